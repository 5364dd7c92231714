"""The process from which Spark forks its Python workers: it has imported all that they need, so that they need not."""

from __future__ import annotations

import gc


def main() -> None:
    import pyspark.daemon

    import nearcast.engine.index  # noqa: F401

    gc.collect()
    gc.freeze()  # so that forked workers share these pages instead of copying them at their first collection
    pyspark.daemon.manager()


if __name__ == "__main__":
    main()

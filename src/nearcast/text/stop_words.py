"""Common function words by language. The lists are short: they omit every word that somebody could search for.

Unicode treats a contraction as one word, with the straight and with the curly apostrophe, so the lists have both.
"""

from __future__ import annotations


def _list(text: str) -> frozenset[str]:
    words = text.split()
    return frozenset(words) | {word.replace("'", "\u2019") for word in words}


STOP_WORDS: dict[str, frozenset[str]] = {
    "en": _list(
        """
        a an the this that these those
        i me my mine you your yours he him his she her hers it its we us our ours they them their theirs
        myself yourself himself herself itself ourselves yourselves themselves
        who whom whose which what where when why how
        am is are was were be been being do does did doing have has had having
        will would shall should can could may might must
        and or but if because as until while so than then though although
        of at by for with about against between into through during before after above below
        to from in out on off over under again further once up down
        here there all any both each few more most other some such no nor not only own same too very just also
        i'm you're he's she's it's we're they're i've you've we've they've i'd you'd he'd she'd we'd they'd
        i'll you'll he'll she'll we'll they'll isn't aren't wasn't weren't hasn't haven't hadn't
        doesn't don't didn't won't wouldn't shan't shouldn't can't cannot couldn't mustn't
        let's that's who's what's here's there's when's where's why's how's
        """
    ),
    "de": _list(
        """
        der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner keines
        ich mich mir du dich dir er ihn ihm sie ihr ihnen es wir uns euch sich man
        mein meine meinen meinem meiner meines dein deine deinen deinem deiner deines
        sein seine seinen seinem seiner seines ihre ihren ihrem ihrer ihres
        unser unsere unseren unserem unserer unseres euer eure euren eurem eurer eures
        dieser diese dieses diesen diesem jener jene jenes jenen jenem welcher welche welches welchen welchem
        wer wen wem wessen was wo wann warum wie
        bin bist ist sind seid war warst waren wart gewesen habe hast hat haben habt hatte hatten
        werde wirst wird werden werdet wurde wurden worden kann kannst können könnt konnte konnten
        muss müssen musste mussten soll sollen sollte sollten will wollen wollte wollten darf dürfen
        und oder aber denn sondern wenn weil dass ob als damit obwohl
        in im ins an am ans auf aus bei beim bis durch für gegen mit nach ohne seit über um unter von vom vor
        zu zum zur zwischen hinter neben während wegen
        auch nicht nur noch schon sehr so dann da hier dort doch mal nun jetzt hin her
        alle allem allen aller alles einige einigen jede jeden jedem jeder jedes viel viele mehr
        """
    ),
    "fr": _list(
        """
        le la les un une des du de au aux ce cet cette ces
        je me moi tu te toi il elle on nous vous ils elles se lui leur eux y en
        mon ma mes ton ta tes son sa ses notre nos votre vos leurs
        qui que quoi dont où quel quelle quels quelles quand comment pourquoi
        suis es est sommes êtes sont étais était étions étiez étaient été être
        ai as a avons avez ont avais avait avions aviez avaient eu avoir
        serai sera serons serez seront serait seraient aurai aura auront aurait auraient
        fait faire font peut peuvent
        et ou mais donc or ni car si comme lorsque puisque parce
        à dans par pour sur sous avec sans entre vers chez contre depuis pendant avant après jusque
        ne pas plus moins très aussi trop bien même encore déjà ici là
        tout toute tous toutes chaque quelque quelques autre autres
        c'est c'était qu'il qu'elle qu'on qu'ils n'est n'a d'un d'une l'on s'il s'ils j'ai
        """
    ),
    "es": _list(
        """
        el la los las lo un una unos unas al del
        yo me mí tú te ti él ella ello usted nosotros nosotras vosotros vosotras ellos ellas ustedes nos os se le les sí
        mi mis tu tus su sus nuestro nuestra nuestros nuestras vuestro vuestra vuestros vuestras
        este esta esto estos estas ese esa eso esos esas aquel aquella aquello aquellos aquellas
        que qué quien quién quienes cual cuál cuales cuyo cuya donde dónde cuando cuándo como cómo
        soy eres es somos sois son era eras éramos eran fue fueron sido ser siendo
        estoy estás está estamos estáis están estaba estaban estado estar
        he has ha hemos habéis han había habían haber hay tengo tiene tienen tenía tener
        y e o u pero sino si porque pues aunque mientras
        a ante bajo con contra de desde durante en entre hacia hasta para por según sin sobre tras
        no ni muy más menos ya también tampoco tan tanto así aquí allí ahí
        todo toda todos todas otro otra otros otras algo algún alguna algunos algunas cada mucho mucha muchos
        muchas poco
        """
    ),
    "it": _list(
        """
        il lo la i gli le un uno una del dello della dei degli delle al allo alla ai agli alle
        dal dallo dalla dai dagli dalle nel nello nella nei negli nelle sul sullo sulla sui sugli sulle
        io mi me tu ti te lui lei egli ella esso essa noi ci vi voi loro essi esse si ne
        mio mia miei mie tuo tua tuoi tue suo sua suoi sue nostro nostra nostri nostre vostro vostra vostri vostre
        questo questa questi queste quello quella quelli quelle quel quei
        che chi cui quale quali quanto dove quando come perché
        sono sei è siamo siete ero eri era eravamo erano essere stato stata stati state
        ho hai ha abbiamo avete hanno avevo aveva avevano avere avuto sarà saranno sarebbe
        e ed o od ma se però anche mentre
        a ad di da in con su per tra fra senza sotto sopra verso contro fino
        non più meno molto poco già ancora così qui qua lì là
        tutto tutta tutti tutte altro altra altri altre ogni qualche c'è c'era
        """
    ),
    "pt": _list(
        """
        o a os as um uma uns umas ao aos à às do da dos das no na nos nas num numa pelo pela pelos pelas
        eu me mim tu te ti ele ela você nós vós eles elas vocês se si lhe lhes lo vos
        meu minha meus minhas teu tua teus tuas seu sua seus suas nosso nossa nossos nossas vosso vossa
        este esta isto estes estas esse essa isso esses essas aquele aquela aquilo aqueles aquelas
        deste desta disto desse dessa disso neste nesta nisto nesse nessa nisso
        que quem qual quais cujo cuja onde quando como porque porquê
        sou és é somos são era eram foi foram sido ser sendo estou está estamos estão estava estavam estar
        hei há hemos havia haver tenho tem temos têm tinha tinham ter
        e ou mas se pois embora enquanto
        ante após até com contra de desde em entre para per perante por sem sob sobre
        não nem muito mais menos já também tão assim aqui ali lá só
        todo toda todos todas outro outra outros outras algum alguma alguns algumas cada
        """
    ),
    "nl": _list(
        """
        de het een dit dat deze die
        ik mij me jij je jou u hij hem zij ze haar het wij we ons jullie hen hun zich
        mijn m'n jouw uw zijn z'n onze
        wie wat waar wanneer waarom hoe welk welke
        ben bent is zijn was waren geweest heb hebt heeft hebben had hadden gehad
        word wordt worden werd werden geworden zal zult zullen zou zouden kan kunt kunnen kon konden
        moet moeten moest moesten mag mogen mocht mochten wil willen wilde wilden
        en of maar want dus als dan omdat terwijl hoewel toen
        aan achter bij binnen boven door in langs met na naar naast om onder op over per rond sinds te
        tegen ten ter tot tussen uit van vanaf via volgens voor zonder
        niet geen ook nog al alleen zeer heel zo hier daar er toch nu eens wel meer
        alle alles iets iemand niets niemand elk elke ieder iedere veel ander andere
        """
    ),
}

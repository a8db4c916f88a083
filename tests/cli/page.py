"""Reads an HTML page that the program wrote."""
import html.parser

VOID = {"meta", "br", "img", "link", "input", "hr"}


class Page(html.parser.HTMLParser):
    """Checks that elements close in order, and keeps tables, scripts and the texts that a reader sees."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.rows, self.scripts, self.tags, self.texts = [], [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        assert len(names) == len(set(names)), (tag, names)
        assert not any(name.startswith("on") for name in names), (tag, names)
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()

    def handle_data(self, data):
        if "script" in self.open:
            self.scripts[-1] += data
        elif "style" not in self.open:
            if self.rows and {"td", "th"} & set(self.open):
                self.rows[-1][-1] += data
            self.texts.append(data)

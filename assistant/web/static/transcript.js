// The lines of the conversation. A line comes again whenever it changes; one without words has gone.

const NAMES = { user: "You", assistant: "Crosstalk" };

export class Transcript {
  constructor(list) {
    this.list = list;
    this.items = new Map();
  }

  reset(lines) {
    this.items.clear();
    this.list.replaceChildren();
    for (const line of lines) this.show(line);
  }

  show(line) {
    let item = this.items.get(line.number);
    if (!line.text && !line.unheard) {
      item?.remove();
      this.items.delete(line.number);
      return;
    }
    const atEnd = this.list.scrollHeight - this.list.scrollTop - this.list.clientHeight < 60;
    if (!item) {
      item = document.createElement("li");
      this.items.set(line.number, item);
      this.list.append(item);
    }
    item.className = `${line.who}${line.partial ? " partial" : ""}`;
    item.replaceChildren(...this.parts(line));
    if (atEnd) this.list.scrollTop = this.list.scrollHeight;
  }

  parts(line) {
    const words = this.element("span", "words", line.text);
    if (line.who === "note") return [words];
    const parts = [this.element("span", "who", NAMES[line.who]), words];
    if (line.unheard) {
      const cut = this.element("del", "", line.unheard);
      cut.title = "not heard: you cut in";
      parts.push(" ", cut);
    }
    return parts;
  }

  element(name, kind, text) {
    const element = document.createElement(name);
    if (kind) element.className = kind;
    element.textContent = text;
    return element;
  }

  text() {
    return [...this.list.children]
      .map((item) => {
        const who = item.querySelector(".who")?.textContent;
        const words = item.querySelector(".words").textContent;
        return who ? `${who}: ${words}` : `-- ${words}`;
      })
      .join("\n");
  }
}

// The one socket. A lost one is opened again; the conversation waits on the other side.

const WAITS = [300, 600, 1200, 2500, 5000];
const FINAL = {
  4001: "The conversation goes on in another tab.",
  4003: "This page is not let in any more: open the address that crosstalk web prints.",
  1008: "The connection was closed because this page sent too much.",
};

export class Connection {
  // `on`: open(), message(data), sound(buffer), lost(text, final)
  constructor(on) {
    this.on = on;
    this.tries = 0;
    this.socket = null;
  }

  open() {
    const socket = new WebSocket(`ws://${location.host}/talk`);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      this.tries = 0;
      this.on.open();
    };
    socket.onmessage = ({ data }) => {
      if (typeof data === "string") this.on.message(JSON.parse(data));
      else this.on.sound(data);
    };
    socket.onclose = ({ code }) => {
      if (this.socket !== socket) return;
      this.socket = null;
      if (FINAL[code]) return this.on.lost(FINAL[code], true);
      const wait = WAITS[Math.min(this.tries++, WAITS.length - 1)];
      this.on.lost("The connection is lost; trying again. Nothing of the conversation is.", false);
      setTimeout(() => this.socket ?? this.open(), wait);
    };
    this.socket = socket;
  }

  get ready() {
    return this.socket?.readyState === WebSocket.OPEN;
  }

  send(message) {
    if (this.ready) this.socket.send(JSON.stringify(message));
  }

  sendFrame(buffer, played) {
    // More than a second waits to be sent: the other side would only fall further behind.
    if (!this.ready || this.socket.bufferedAmount > 32000) return;
    new DataView(buffer).setUint32(0, played >>> 0, true);
    this.socket.send(buffer);
  }
}

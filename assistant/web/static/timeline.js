// The last seconds as a picture: both sides' loudness, what the floor decided, how long the answer took.

const RATE = 50; // peaks a second
const KEPT = 60 * RATE;
const SECOND = 46; // pixels
const MARKS = {
  endpoint: ["good", "turn over"],
  duck: ["warn", "quieter"],
  hold: ["warn", "held"],
  resume: ["good", "goes on"],
  barge_in: ["bad", "you cut in"],
  interjection: ["assistant", "it cuts in"],
  backchannel: ["warn", "uh-huh"],
  listening_noise: ["assistant", "mm-hm"],
  error: ["bad", "error"],
};

export class Timeline {
  constructor(canvas) {
    this.canvas = canvas;
    this.reset({ user: [], assistant: [], events: [], turns: [], status: null });
    const redraw = () => this.draw();
    new ResizeObserver(redraw).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  }

  reset({ user, assistant, events, turns, status }) {
    this.user = [...user];
    this.assistant = [...assistant];
    this.events = events.filter((event) => MARKS[event.event]);
    this.turns = [...turns];
    this.end = status?.t ?? 0;
    this.draw();
  }

  status({ t, user, assistant }) {
    this.end = t;
    this.user.push(...user);
    this.assistant.push(...assistant);
    for (const peaks of [this.user, this.assistant]) if (peaks.length > KEPT) peaks.splice(0, peaks.length - KEPT);
    this.draw();
  }

  event(event) {
    if (MARKS[event.event]) this.events.push(event);
    if (this.events.length > 200) this.events.shift();
  }

  turn(turn) {
    this.turns = [...this.turns.filter((known) => known.index !== turn.index), turn].slice(-30);
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !height) return;
    const scale = devicePixelRatio || 1;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    const style = getComputedStyle(this.canvas);
    const colour = (name) => style.getPropertyValue(`--${name}`);
    const c = this.canvas.getContext("2d");
    c.scale(scale, scale);
    const right = width - 14;
    const x = (t) => right - (this.end - t) * SECOND;
    const top = 22;
    const bottom = height - 18;
    const lane = (bottom - top) / 2;
    c.font = "11px system-ui, sans-serif";

    c.strokeStyle = colour("line");
    c.fillStyle = colour("soft");
    c.lineWidth = 1;
    for (let second = Math.floor(this.end); second >= 0 && x(second) > 0; second--) {
      this.line(c, x(second), top, bottom);
      if (second % 5 === 0) c.fillText(`${second} s`, x(second) + 3, height - 5);
    }
    for (const turn of this.turns) this.wait(c, turn, x, top, bottom, colour);
    this.wave(c, this.user, top + lane / 2, lane / 2 - 3, x, colour("user"));
    this.wave(c, this.assistant, top + lane * 1.5, lane / 2 - 3, x, colour("assistant"));
    this.marks(c, x, top, bottom, colour);
    this.name(c, "You", top + 12, colour("user"), colour("panel"));
    this.name(c, "Crosstalk", top + lane + 12, colour("assistant"), colour("panel"));
  }

  line(c, x, from, to) {
    c.beginPath();
    c.moveTo(Math.round(x) + 0.5, from);
    c.lineTo(Math.round(x) + 0.5, to);
    c.stroke();
  }

  name(c, text, y, colour, ground) {
    c.font = "600 12px system-ui, sans-serif";
    const width = c.measureText(text).width;
    c.fillStyle = ground;
    c.globalAlpha = 0.85;
    c.fillRect(8, y - 12, width + 10, 17);
    c.globalAlpha = 1;
    c.fillStyle = colour;
    c.fillText(text, 13, y);
    c.font = "11px system-ui, sans-serif";
  }

  wave(c, peaks, middle, reach, x, colour) {
    c.fillStyle = colour;
    const width = SECOND / RATE;
    for (let i = peaks.length - 1; i >= 0; i--) {
      const left = x(this.end - (peaks.length - i) / RATE);
      if (left < 0) break;
      const half = Math.max(0.6, Math.sqrt(peaks[i] / 255) * reach);
      c.fillRect(left, middle - half, width, 2 * half);
    }
  }

  wait(c, turn, x, top, bottom, colour) {
    const wait = turn.latency.voice_to_voice;
    if (wait === null || turn.speech_start === null) return;
    const left = x(turn.user_end);
    if (x(turn.speech_start) < 0) return;
    c.fillStyle = colour("good");
    c.globalAlpha = 0.2;
    c.fillRect(left, top, Math.max(1, x(turn.speech_start) - left), bottom - top);
    c.globalAlpha = 1;
    c.font = "600 11px system-ui, sans-serif";
    c.fillText(`${Math.round(wait * 1000)} ms`, left + 3, (top + bottom) / 2 + 4);
    c.font = "11px system-ui, sans-serif";
  }

  marks(c, x, top, bottom, colour) {
    const seen = this.events.map((event) => [x(event.t), ...MARKS[event.event]]).filter(([at]) => at >= 0);
    c.setLineDash([3, 3]);
    for (const [at, tone] of seen) {
      c.strokeStyle = colour(tone);
      this.line(c, at, top - 4, bottom);
    }
    c.setLineDash([]);
    // Two labels in one place are none: what matters more is written first.
    const taken = [];
    for (const wanted of ["bad", "assistant", "good", "warn"]) {
      for (const [at, tone, label] of seen) {
        const width = c.measureText(label).width + 6;
        const free = taken.every(([from, to]) => at + width < from || at > to);
        if (tone !== wanted || !free) continue;
        c.fillStyle = colour(tone);
        c.fillText(label, at - 2, top - 8);
        taken.push([at, at + width]);
      }
    }
  }
}

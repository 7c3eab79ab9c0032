// The assistant's voice: frames of 480 samples go through a short buffer that evens out their coming.
//
// `gone` counts every sample that was received and will not be played any more: played, skipped or dropped. It is
// reported back, so that the other side knows exactly what has been heard.

const FRAME = 480;
const FIRST = 2 * FRAME; // samples that are waited for before playing: 40 ms, 60 after the buffer ran dry once
const MOST = 3 * FRAME;
const LONGEST = 480000;
const FADE = 120; // 5 ms: a dropped sound ends without a click
const HUSH = 8000; // a third of a second

class Playback extends AudioWorkletProcessor {
  constructor() {
    super();
    this.queue = [];
    this.head = 0;
    this.buffered = 0;
    this.gone = 0;
    this.goal = FIRST;
    this.waiting = true;
    this.fading = false;
    this.hushed = 0;
    this.blocks = 0;
    this.epoch = 0;
    this.port.onmessage = ({ data }) => {
      if (data instanceof ArrayBuffer) this.push(data);
      else if (data === "drop") this.drop();
      else if (data === "hush") this.hush();
      else this.reset(data.epoch);
    };
  }

  // A new connection: what is left of the old one is not played, and counting begins again.
  reset(epoch) {
    this.drop();
    this.gone = -this.buffered; // the fade of the old one is nobody's
    this.epoch = epoch;
  }

  // The user pressed stop: what the other side sends until it has heard of that is not played either.
  hush() {
    this.drop();
    this.hushed = HUSH;
  }

  push(buffer) {
    const samples = Float32Array.from(new Int16Array(buffer), (value) => value / 32768);
    if (this.hushed > 0) {
      this.hushed -= samples.length;
      this.gone += samples.length;
      return;
    }
    // More than the goal is waiting: let a silent frame go, so that the delay comes down again.
    const spare = this.buffered >= this.goal + FRAME && samples.every((value) => value === 0);
    if (spare || this.buffered > LONGEST) {
      this.gone += samples.length;
      return;
    }
    this.queue.push(samples);
    this.buffered += samples.length;
  }

  drop() {
    this.hushed = 0;
    const tail = new Float32Array(this.waiting ? 0 : Math.min(FADE, this.buffered));
    this.read(tail);
    this.gone += this.buffered - tail.length; // the tail is counted when it is played
    for (let i = 0; i < tail.length; i++) tail[i] *= 1 - (i + 1) / tail.length;
    this.queue = tail.length ? [tail] : [];
    this.head = 0;
    this.buffered = tail.length;
    this.fading = true;
    this.report();
  }

  read(out) {
    let filled = 0;
    while (filled < out.length && this.queue.length) {
      const first = this.queue[0];
      const count = Math.min(out.length - filled, first.length - this.head);
      out.set(first.subarray(this.head, this.head + count), filled);
      filled += count;
      this.head += count;
      if (this.head === first.length) {
        this.queue.shift();
        this.head = 0;
      }
    }
    this.buffered -= filled;
    this.gone += filled;
    return filled;
  }

  report() {
    this.port.postMessage({ epoch: this.epoch, gone: this.gone, buffered: this.buffered });
  }

  process(_, outputs) {
    const out = outputs[0][0];
    if (this.waiting && this.buffered >= this.goal) this.waiting = false;
    if (!this.waiting && this.read(out) < out.length) {
      this.waiting = true;
      if (!this.fading) this.goal = Math.min(MOST, this.goal + FRAME);
      this.fading = false;
    }
    if (++this.blocks % 2 === 0) this.report();
    return true;
  }
}

registerProcessor("playback", Playback);

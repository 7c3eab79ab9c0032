// The microphone, 20 ms at a time: 320 samples of 16 kHz, 16 bits, behind 4 bytes left free for the playback position.

const RATE = 16000;
const FRAME = 320;
const HEAD = 4;

class Decimator {
  // For browsers that keep the microphone at its own rate: a windowed-sinc low-pass, read off at the wanted times.
  constructor(from) {
    this.step = from / RATE;
    this.half = Math.ceil(16 * this.step);
    this.cutoff = 0.45 / this.step;
    this.kept = new Float32Array(0);
    this.at = this.half;
  }

  push(input, out) {
    const samples = new Float32Array(this.kept.length + input.length);
    samples.set(this.kept);
    samples.set(input, this.kept.length);
    while (this.at + this.half < samples.length) {
      out(this.read(samples, this.at));
      this.at += this.step;
    }
    const from = Math.max(0, Math.floor(this.at) - this.half);
    this.kept = samples.slice(from);
    this.at -= from;
  }

  read(samples, at) {
    let sum = 0;
    for (let i = Math.ceil(at - this.half); i <= at + this.half; i++) {
      if (i < 0) continue;
      const x = i - at;
      const sinc = x === 0 ? 2 * this.cutoff : Math.sin(2 * Math.PI * this.cutoff * x) / (Math.PI * x);
      sum += samples[i] * sinc * (0.5 + 0.5 * Math.cos((Math.PI * x) / this.half));
    }
    return sum;
  }
}

class Capture extends AudioWorkletProcessor {
  constructor() {
    super();
    this.decimator = sampleRate === RATE ? null : new Decimator(sampleRate);
    this.silence = new Float32Array(128);
    this.begin();
  }

  begin() {
    this.buffer = new ArrayBuffer(HEAD + 2 * FRAME);
    this.view = new DataView(this.buffer);
    this.count = 0;
  }

  take(sample) {
    const clipped = Math.max(-1, Math.min(1, sample));
    this.view.setInt16(HEAD + 2 * this.count, Math.round(clipped * 32767), true);
    if (++this.count === FRAME) {
      this.port.postMessage(this.buffer, [this.buffer]);
      this.begin();
    }
  }

  process(inputs) {
    // Without a microphone the clock goes on all the same: silence.
    const input = inputs[0][0] ?? this.silence;
    if (this.decimator === null) for (const sample of input) this.take(sample);
    else this.decimator.push(input, (sample) => this.take(sample));
    return true;
  }
}

registerProcessor("capture", Capture);

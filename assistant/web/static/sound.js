// Microphone and speaker through the browser: 16 kHz in, 24 kHz out, its own echo canceller between them.

const WANTED = { channelCount: 1, echoCancellation: true, noiseSuppression: false, autoGainControl: true };

export class Sound {
  // `onFrame(buffer)` gets 20 ms of the microphone; `played` is what may be written into its first four bytes.
  constructor(onFrame) {
    this.onFrame = onFrame;
    this.gone = 0;
    this.epoch = 0;
    this.track = null;
  }

  get running() {
    return this.output?.state === "running" && this.input?.state === "running";
  }

  // Samples that are in the air, of those that were given to `play` since `restart`.
  get played() {
    const latency = this.output.outputLatency || this.output.baseLatency || 0;
    return Math.max(0, this.gone - Math.round(latency * 24000));
  }

  async open({ microphone }) {
    this.output = new AudioContext({ sampleRate: 24000, latencyHint: "interactive" });
    await this.output.audioWorklet.addModule("/static/playback.worklet.js");
    this.speaker = new AudioWorkletNode(this.output, "playback", { numberOfInputs: 0, outputChannelCount: [1] });
    this.speaker.port.onmessage = ({ data }) => {
      if (data.epoch === this.epoch) this.gone = data.gone;
    };
    this.speaker.connect(this.output.destination);
    const stream = microphone ? await navigator.mediaDevices.getUserMedia({ audio: WANTED }) : null;
    await this.listen(stream);
    await Promise.all([this.output.resume(), this.input.resume()]);
  }

  async listen(stream) {
    let source = null;
    this.input = new AudioContext({ sampleRate: 16000, latencyHint: "interactive" });
    try {
      source = stream && this.input.createMediaStreamSource(stream);
    } catch {
      // Some browsers connect a microphone only at its own rate: the worklet converts.
      await this.input.close();
      this.input = new AudioContext({ latencyHint: "interactive" });
      source = this.input.createMediaStreamSource(stream);
    }
    await this.input.audioWorklet.addModule("/static/capture.worklet.js");
    const capture = new AudioWorkletNode(this.input, "capture", { numberOfOutputs: 1, outputChannelCount: [1] });
    capture.port.onmessage = ({ data }) => this.onFrame(data);
    source?.connect(capture);
    capture.connect(this.input.destination); // it gives silence, but only what is connected runs
    this.track = stream?.getAudioTracks()[0] ?? null;
  }

  // A new connection: forget what waits, count from nought.
  restart() {
    this.gone = 0;
    this.speaker?.port.postMessage({ epoch: ++this.epoch });
  }

  play(buffer) {
    this.speaker?.port.postMessage(buffer, [buffer]);
  }

  hush() {
    this.speaker?.port.postMessage("hush");
  }

  drop() {
    this.speaker?.port.postMessage("drop");
  }

  mute(muted) {
    if (this.track) this.track.enabled = !muted;
  }
}

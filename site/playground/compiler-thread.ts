import type { Playground } from './state.js';
import type { CompileReply, CompileRequest } from './worker.js';

/** Time after which a compilation is stopped, in ms. The first one also loads the parser. */
const MOST_MS = 20_000;

/** Runs compilations in a worker, only the newest of which counts. */
export class CompilerThread {
  #worker: Worker | null = null;
  #id = 0;
  #timer: ReturnType<typeof setTimeout> | null = null;
  readonly #done: (reply: Omit<CompileReply, 'id'>) => void;

  /** @param done called with the result of the newest compilation, or with the reason why there is none */
  constructor(done: (reply: Omit<CompileReply, 'id'>) => void) {
    this.#done = done;
  }

  compile(input: Playground): void {
    this.#id += 1;
    this.#worker ??= this.#start();
    this.#worker.postMessage({ id: this.#id, input } satisfies CompileRequest);
    this.#wait();
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#worker?.terminate();
    this.#worker = null;
  }

  #wait(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#fail(`it took longer than ${MOST_MS / 1_000} s`), MOST_MS);
  }

  #fail(failed: string): void {
    this.stop();
    this.#done({ result: null, failed });
  }

  #start(): Worker {
    const worker = new Worker(new URL('./worker.ts', import.meta.url), { type: 'module' });
    worker.addEventListener('message', ({ data }: MessageEvent<CompileReply>) => {
      if (data.id !== this.#id) return;
      if (this.#timer !== null) clearTimeout(this.#timer);
      this.#done(data);
    });
    worker.addEventListener('error', () => this.#fail('the compiler could not be loaded'));
    return worker;
  }
}

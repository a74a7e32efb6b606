import type { Worker } from 'node:worker_threads';
import type { ServiceLog } from '../log.js';
import { messageOf } from '../thrown.js';
import { startThread } from './thread.js';

export interface ThreadJobState {
  readonly state: 'none' | 'never' | 'running' | 'done' | 'failed';
  readonly began_at: string | null;
  readonly ended_at: string | null;
  readonly by: string | null;
  readonly progress: Readonly<Record<string, number>> | null;
  readonly result: Readonly<Record<string, unknown>> | null;
  readonly why: string | null;
}

export type JobReply =
  | { readonly kind: 'progress'; readonly progress: Readonly<Record<string, number>> }
  | { readonly kind: 'done'; readonly result: Readonly<Record<string, unknown>> }
  | { readonly kind: 'failed'; readonly reason: string };

export interface JobOptions {
  readonly name: string;
  readonly file: URL;
  /** Returns the thread's input, or the reason why the job cannot run. */
  readonly data: () => Readonly<Record<string, unknown>> | string;
  readonly deadlineMs: number;
  readonly memoryMb: number;
  readonly log: ServiceLog;
}

const NEVER: ThreadJobState = Object.freeze({
  state: 'never',
  began_at: null,
  ended_at: null,
  by: null,
  progress: null,
  result: null,
  why: null,
});

/** Runs a job in a thread, one run at a time, and stores the result of the latest run. */
export class ThreadJob {
  readonly #options: JobOptions;
  #state: ThreadJobState = NEVER;
  #thread: Worker | null = null;

  constructor(options: JobOptions) {
    this.#options = options;
  }

  look(): ThreadJobState {
    if (this.#state.state !== 'never') return this.#state;
    const data = this.#data();
    return typeof data === 'string' ? { ...NEVER, state: 'none', why: data } : NEVER;
  }

  /** Starts a run unless one is in progress. Returns the job's state. @param by the subject that starts the job */
  begin(by: string): ThreadJobState {
    if (this.#thread !== null) return this.#state;
    const data = this.#data();
    if (typeof data === 'string') return { ...NEVER, state: 'none', why: data };
    this.#state = { ...NEVER, state: 'running', began_at: now(), by };
    this.#run(data);
    return this.#state;
  }

  async close(): Promise<void> {
    await this.#thread?.terminate();
  }

  #data(): Readonly<Record<string, unknown>> | string {
    try {
      return this.#options.data();
    } catch (error) {
      return messageOf(error);
    }
  }

  #run(workerData: Readonly<Record<string, unknown>>): void {
    const { file, deadlineMs, memoryMb, name, log } = this.#options;
    const thread = startThread(file, { maxOldGenerationSizeMb: memoryMb }, workerData);
    this.#thread = thread;
    const end = (ended: Pick<ThreadJobState, 'state' | 'result' | 'why'>): void => {
      if (this.#thread !== thread) return;
      clearTimeout(late);
      this.#thread = null;
      this.#state = { ...this.#state, ...ended, ended_at: now(), progress: null };
      if (ended.state === 'failed') log.error(`${name} failed`, { cause: ended.why });
      void thread.terminate();
    };
    const failed = (why: string): void => end({ state: 'failed', result: null, why });
    const late = setTimeout(() => failed(`it took more than ${deadlineMs / 60_000} min`), deadlineMs).unref();
    thread.on('message', (reply: JobReply) => {
      if (reply.kind === 'progress') this.#state = { ...this.#state, progress: reply.progress };
      else if (reply.kind === 'done') end({ state: 'done', result: reply.result, why: null });
      else failed(reply.reason);
    });
    thread.once('error', (error) => failed(error.message));
    thread.once('exit', () => failed('its thread ended'));
  }
}

function now(): string {
  return new Date().toISOString();
}

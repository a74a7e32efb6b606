import { type ChildProcess, fork } from 'node:child_process';

/**
 * Tokens of `user:ann`, who sees every row; of `user:root`, who is an admin; and of `user:eu`, from whom row filters hide
 * some, in the shop. They end after five minutes.
 */
export interface Tokens {
  readonly token: string;
  readonly root: string;
  readonly filtered: string;
}

const FRESH_MS = 60_000;
/** What is slow is tried again: code that is not yet compiled and garbage of others' are not the text's fault. */
const TRIES = 5;

/** A gateway in a process of its own, which measures how long its main thread was held: see `serving.ts`. */
export class Gateway {
  readonly #child: ChildProcess;
  readonly restPort: number;
  readonly wirePort: number;
  #tokens: Tokens | null = null;
  #since = 0;

  private constructor(child: ChildProcess, ports: { readonly restPort: number; readonly wirePort: number }) {
    this.#child = child;
    this.restPort = ports.restPort;
    this.wirePort = ports.wirePort;
  }

  /** @param serving the shop, or notes that are indexed */
  static async start(serving: 'shop' | 'notes' = 'shop'): Promise<Gateway> {
    const child = fork(new URL('./serving.js', import.meta.url), [serving], {
      execArgv: [],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    return new Gateway(child, await heard(child));
  }

  async tokens(): Promise<Tokens> {
    if (this.#tokens === null || Date.now() - this.#since > FRESH_MS) {
      this.#tokens = await this.#said<Tokens>('tokens');
      this.#since = Date.now();
    }
    return this.#tokens;
  }

  /** Posts `body` as `who`. */
  async post(
    path: string,
    body: string,
    who: keyof Tokens = 'root',
    headers: Readonly<Record<string, string>> = {},
  ): Promise<{ readonly status: number; readonly body: string }> {
    const tokens = await this.tokens();
    const response = await fetch(`http://127.0.0.1:${this.restPort}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${tokens[who]}`, ...headers },
      body,
    });
    return { status: response.status, body: await response.text() };
  }

  /** What a change is made for. The next one has a token of its own: one is good for one change. */
  async published(): Promise<{ readonly version: string }> {
    this.#tokens = null;
    const { root } = await this.tokens();
    const headers = { authorization: `Bearer ${root}` };
    const response = await fetch(`http://127.0.0.1:${this.restPort}/osl/objects`, { headers });
    return (await response.json()) as { version: string }; // as its schema says
  }

  /** Milliseconds for which `ask` held it: the least of a few tries; the first below `most` ends them. */
  async heldBy(ask: () => Promise<unknown>, most: number): Promise<number> {
    let least = Number.POSITIVE_INFINITY;
    for (let i = 0; i < TRIES && least > most; i++) {
      await this.tokens();
      await this.#said('reset');
      await ask();
      least = Math.min(least, (await this.#said<{ held: number }>('held')).held);
    }
    return least;
  }

  end(): void {
    this.#child.send('end');
  }

  #said<T>(message: string): Promise<T> {
    const answer = heard<T>(this.#child);
    this.#child.send(message);
    return answer;
  }
}

function heard<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    const gone = (code: number | null): void => reject(new Error(`the gateway ended with ${code}`));
    child.once('exit', gone);
    child.once('message', (message) => {
      child.off('exit', gone);
      resolve(message as T); // as `serving.ts` says it
    });
  });
}

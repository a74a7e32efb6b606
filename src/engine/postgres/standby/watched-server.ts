import { OtherRole, openSessionOnFirst, type PostgresSession } from '../../../base/postgres/index.js';
import { positionOf, type ServerPosition } from './probe.js';

/** Time in ms after which a silent server counts as gone. */
const SILENCE_MS = 2_000;
const RETRY_MS = 500;

export interface WatchedServerOptions {
  readonly role: 'primary' | 'standby';
  /** Runs `connect` with the current URL of the governed role. */
  readonly login: (connect: (url: string) => Promise<PostgresSession>) => Promise<PostgresSession>;
  readonly everyMs: number;
  /** Receives each position, and the time before it was asked for, in ms on the clock of `performance.now()`. */
  readonly moved: (askedAt: number, position: ServerPosition) => void;
  /** Called if the server does not answer, or has another role now; the watch goes on. */
  readonly lost: (cause: unknown) => void;
}

/** Asks a server for its position in the log, again and again, on a session of its own. */
export class WatchedServer {
  readonly #options: WatchedServerOptions;
  #session: PostgresSession | null = null;
  #timer: NodeJS.Timeout | null = null;
  #asking: Promise<void> | null = null;
  #closed = false;

  constructor(options: WatchedServerOptions) {
    this.#options = options;
    this.#asking = this.#ask();
  }

  /** Asks at once; resolves when the server has answered or is lost. */
  async askNow(): Promise<void> {
    const before = this.#asking;
    await before;
    if (this.#asking === before && !this.#closed) {
      if (this.#timer !== null) clearTimeout(this.#timer);
      this.#asking = this.#ask();
    }
    await this.#asking;
  }

  close(): void {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#session?.cut();
  }

  async #ask(): Promise<void> {
    const { login, role, everyMs, moved, lost } = this.#options;
    try {
      this.#session ??= await login(connect);
      const askedAt = performance.now();
      const position = await positionOf(this.#session);
      if (position.isStandby !== (role === 'standby')) throw new OtherRole(role);
      if (!this.#closed) moved(askedAt, position);
      this.#later(everyMs);
    } catch (error) {
      this.#session?.cut();
      this.#session = null;
      if (!this.#closed) lost(error);
      this.#later(RETRY_MS);
    }
  }

  #later(ms: number): void {
    if (this.#closed) this.#session?.cut();
    else
      this.#timer = setTimeout(() => {
        this.#asking = this.#ask();
      }, ms).unref();
  }
}

function connect(url: string): Promise<PostgresSession> {
  return openSessionOnFirst(url, { application_name: 'osl-gateway standbys', silenceMs: SILENCE_MS });
}

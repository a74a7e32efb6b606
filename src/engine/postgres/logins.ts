import { withoutLogin } from '../../base/postgres/index.js';
import { messageOf } from '../../base/thrown.js';
import { NoSystemCredentials } from '../upstream-report.js';

/** The URLs with which the sessions of a connector log in. */
export interface ConnectorLogins {
  /** The governed role's URL; null if the command that prints it failed at startup. */
  readonly url: string | null;
  readonly systemUrl: string | null;
}

/** SQLSTATEs of a refused login: invalid_password, invalid_authorization_specification. */
const REFUSAL_CODES: ReadonlySet<string> = new Set(['28P01', '28000']);
/** Pause in ms before the source of passwords is read again. */
const PAUSE_MS = 5_000;

/** Current logins of a connector. After a refused login, the source is reread once for all waiting sessions. */
export class CurrentLogins {
  #current: ConnectorLogins;
  readonly #source: (() => Promise<ConnectorLogins>) | null;
  #reading: Promise<void> | null = null;
  #readAt = Number.NEGATIVE_INFINITY;
  /** The last error of `#source`. */
  #fault: string | null = null;

  constructor({
    url,
    systemUrl,
    logins,
  }: ConnectorLogins & { readonly logins?: () => Promise<ConnectorLogins> }) {
    this.#current = { url, systemUrl };
    this.#source = logins ?? null;
  }

  renew({ url, systemUrl }: ConnectorLogins): void {
    this.#current = { url, systemUrl };
  }

  /**
   * Calls `connect` with the current URL and, after a refused login, with the reread URL. Rejects with the errors of
   * `connect`, with NoSystemCredentials, or with an Error if the governed role's URL is unknown.
   */
  async connect<T>(kind: keyof ConnectorLogins, connect: (url: string) => Promise<T>): Promise<T> {
    if (this.#current[kind] === null) await this.#reread();
    const url = this.#urlOf(kind);
    try {
      return await connect(url);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      await this.#reread();
      const next = this.#urlOf(kind);
      if (next === url) throw error;
      return connect(next);
    }
  }

  #urlOf(kind: keyof ConnectorLogins): string {
    const url = this.#current[kind];
    if (url !== null) return url;
    throw kind === 'url' ? new Error(this.#fault ?? 'its URL is not known') : new NoSystemCredentials();
  }

  #reread(): Promise<void> {
    if (this.#source === null) return Promise.resolve();
    if (this.#reading === null && performance.now() - this.#readAt < PAUSE_MS) return Promise.resolve();
    this.#reading ??= this.#source()
      .then(
        (next) => this.#adopt(next),
        (error: unknown) => {
          // Used only if there is no URL; otherwise the server's refusal is more informative for the operator.
          this.#fault = messageOf(error);
        },
      )
      .finally(() => {
        this.#reading = null;
        this.#readAt = performance.now();
      });
    return this.#reading;
  }

  /** Adopts new logins to the same databases; changing to another database requires a restart. */
  #adopt(next: ConnectorLogins): void {
    const { url, systemUrl } = this.#current;
    this.#current = {
      url: nextIfSameDatabase(url, next.url),
      systemUrl: nextIfSameDatabase(systemUrl, next.systemUrl),
    };
  }
}

/** Returns `next` if it names the same database or `current` is null; otherwise `current`. */
function nextIfSameDatabase(current: string | null, next: string | null): string | null {
  if (current === null || next === null) return current ?? next;
  return withoutLogin(next) === withoutLogin(current) ? next : current;
}

function isRefusal(error: unknown): boolean {
  return error instanceof Error && 'code' in error && REFUSAL_CODES.has(String(error.code));
}

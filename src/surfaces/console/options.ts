import type { ConsoleFiles } from './files.js';

/** What a console is served with. */
export interface ConsoleOptions {
  readonly files: ConsoleFiles;
  /** Whether what admins do is there too. */
  readonly admin: boolean;
  readonly version: string;
  /** Null anywhere but on the demo of this machine. */
  readonly demo: DemoSignIn | null;
  /** Whether `osl token` mints tokens that are taken here. */
  readonly localTokens: boolean;
  /** Where the wire listens: for questions that are copied for psql. */
  readonly wire: () => { readonly port: number; readonly tls: boolean };
  /** With whom people sign in. */
  readonly logins: () => readonly {
    readonly issuer: string;
    readonly login: { readonly clientId: string; readonly scopes: readonly string[] } | null;
  }[];
}

/** Signs a visitor of the demo in, without a password: whoever is on this machine may be any of these. */
export interface DemoSignIn {
  /** Each `chain` is root to leaf. */
  readonly callers: readonly { readonly chain: readonly string[]; readonly about: string }[];
  mint(chain: readonly string[]): Promise<string>;
}

import type { FastifyInstance } from 'fastify';
import type { RequestParts } from '../../ask/index.js';
import type { ConsoleFiles } from './files.js';

export interface ConsoleOptions {
  readonly files: ConsoleFiles;
  /** True if admin pages are included. */
  readonly admin: boolean;
  readonly version: string;
  /** Null except for `osl demo` on this machine. */
  readonly demo: DemoSignIn | null;
  /** True if tokens of `osl token` are accepted. */
  readonly localTokens: boolean;
  /** Port of the Postgres protocol, for copied psql commands. */
  readonly wire: () => { readonly port: number; readonly tls: boolean };
  /** Issuers for sign-in. */
  readonly logins: () => readonly {
    readonly issuer: string;
    readonly login: { readonly clientId: string; readonly scopes: readonly string[] } | null;
  }[];
}

/** Passwordless sign-in as one of `callers`. Made by `demo.ts`, which only `osl demo` imports. */
export interface DemoSignIn {
  /** Each `chain` is root to leaf. */
  readonly callers: readonly { readonly chain: readonly string[]; readonly about: string }[];
  readonly methods: ReadonlyMap<string, string>;
  add(app: FastifyInstance, service: RequestParts): void;
}

import type { FastifyInstance } from 'fastify';
import type { RequestParts } from '../../ask/index.js';
import type { ConsoleFiles } from './files.js';

/** What a console is served with. */
export interface ConsoleOptions {
  readonly files: ConsoleFiles;
  /** Whether what admins do is there too. */
  readonly admin: boolean;
  readonly version: string;
  /** Null on every server but `osl demo` on this machine. */
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

/** Sign-in without a password, as one of `callers`. Made by `demo.ts`, which `osl demo` alone imports. */
export interface DemoSignIn {
  /** Each `chain` is root to leaf. */
  readonly callers: readonly { readonly chain: readonly string[]; readonly about: string }[];
  /** Methods of its paths. */
  readonly methods: ReadonlyMap<string, string>;
  add(app: FastifyInstance, service: RequestParts): void;
}

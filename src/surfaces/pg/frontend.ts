import { randomUUID } from 'node:crypto';
import { queryError } from 'osl-compiler';
import type { Identity } from '../../../policy/index.js';
import {
  createWireServer,
  fatal,
  type Handler,
  readScramVerifier,
  WireError,
  type WireOptions,
  type WireServer,
  wrongPassword,
} from '../../../wire/index.js';
import type { AnswerParts } from '../../ask/index.js';
import type { Call } from '../../ask/request/call.js';
import {
  accountLogin,
  login,
  refusedCommand,
  refusedConnection,
  TooManyGuesses,
} from '../../ask/request/session.js';
import type { Catalogs } from '../catalog/index.js';
import { OpenSessions } from './open-sessions.js';
import { PgSession } from './session.js';
import { SessionSettings, STARTUP_PARAMETERS } from './settings.js';
import { withKnownZone } from './time-zone.js';
import { wireError } from './wire-error.js';

/** The one database that the wire shows. */
export const DATABASE = 'osl';

export interface PgOptions extends Omit<WireOptions, 'onInternalError' | 'startupParameters'> {
  /** Answers what clients ask `pg_catalog` and `information_schema`. Null or absent: they are refused. */
  readonly catalogs?: Catalogs | null;
  /** Sessions of one subject; 53300 beyond. Default 1,000. */
  readonly maxSubjectSessions?: number;
}

const MAX_SUBJECT_SESSIONS = 1_000;

/** The Postgres frontend: the protocol of `wire/` in front of the spine. */
export function createPgFrontend(service: AnswerParts, options: PgOptions = {}): WireServer {
  const { catalogs = null, maxSubjectSessions = MAX_SUBJECT_SESSIONS, ...wire } = options;
  const sessions = new OpenSessions(maxSubjectSessions);
  return createWireServer(
    {
      ...wire,
      startupParameters: STARTUP_PARAMETERS,
      onInternalError: (cause) =>
        service.log.error('internal error on the wire', {
          error: cause instanceof Error ? (cause.stack ?? cause.message) : String(cause),
        }),
    },
    handlerOf(service, catalogs, sessions),
  );
}

function handlerOf(service: AnswerParts, catalogs: Catalogs | null, sessions: OpenSessions): Handler {
  return {
    scram: (user) => {
      const { snapshot } = service.model();
      // Which users log in how is the policy's to say: without one nobody's password is asked for.
      if (snapshot === null) throw withoutPolicy();
      const account = snapshot.serviceAccounts.get(user);
      return account === undefined ? null : readScramVerifier(account.scram);
    },
    noteWrongPassword: (user, remoteAddress) => service.limiter.guesses.wrong(user, remoteAddress),
    async authenticate({ user, database, password, parameters, remoteAddress }, control) {
      const call = callFrom(remoteAddress, password === '' ? null : password);
      try {
        const account = password === null ? await accountLogin(service, call, user) : null;
        const identity = account?.identity ?? (await login(service, call, user));
        if (database !== DATABASE)
          throw fatal('3D000', `database "${database}" does not exist`, {
            hint: `connect to database ${DATABASE}`,
          });
        const settings = new SessionSettings(user, await withKnownZone(service, parameters));
        const ended = sessions.open(identity.subject);
        if (ended === null) throw await tooMany(service, call, identity);
        return new PgSession(service, { identity, account, ended }, settings, control, catalogs);
      } catch (failure) {
        if (failure instanceof TooManyGuesses) throw wrongPassword(user);
        if (failure instanceof WireError) throw failure.as('FATAL');
        throw wireError(failure, call.requestId, '', 'FATAL');
      }
    },
    recordRefusal: ({ kind, sqlstate, remoteAddress }) => {
      void refusedConnection(service, callFrom(remoteAddress, null), `wire ${kind}`, sqlstate);
    },
  };
}

function withoutPolicy(): WireError {
  const { sqlstate, message, code } = queryError('noSnapshot', {});
  return fatal(sqlstate, message, { detail: code });
}

/** Recorded as a refusal of its own: the login itself was right. */
async function tooMany(service: AnswerParts, { requestId }: Call, identity: Identity): Promise<WireError> {
  const call: Call = { requestId, surface: 'wire', credentials: { kind: 'session', identity } };
  await refusedCommand(service, call, '53300');
  return fatal('53300', `too many connections for "${identity.subject}"`, {
    hint: 'close some, or put a pooler in front',
  });
}

function callFrom(address: string, token: string | null): Call {
  return { requestId: randomUUID(), surface: 'wire', credentials: { kind: 'bearer', token, address } };
}

import { randomUUID, type X509Certificate } from 'node:crypto';
import { queryError } from 'osl-compiler';
import { type Identity, readClientCertificate, ruleFor } from '../../../policy/index.js';
import {
  createWireServer,
  fatal,
  type Handler,
  type RefusedEvent,
  readScramVerifier,
  type WireError,
  type WireLogin,
  type WireOptions,
  type WireServer,
  wrongPassword,
} from '../../../wire/index.js';
import {
  accountLogin,
  certificateLogin,
  countWrongPassword,
  login,
  QuestionRouter,
  type RequestCall,
  type RequestParts,
  refusedCommand,
  refusedConnection,
  type SubscriptionParts,
  type TokenlessSession,
  TooManyGuesses,
} from '../../ask/index.js';
import type { CatalogProvider } from '../catalog/index.js';
import { PgSession } from './session.js';
import {
  LocalSessionCounts,
  type OwnSessions,
  type SessionCounts,
  SessionRegister,
} from './session-register.js';
import { loginError } from './session-requests.js';
import { SessionSettings, STARTUP_PARAMETERS, withResolvedZone } from './settings.js';

const DATABASE = 'osl';

export interface PgOptions extends Omit<WireOptions, 'onInternalError' | 'startupParameters'> {
  /** Answers queries on `pg_catalog` and `information_schema`. If null or absent, they are refused. */
  readonly catalogs?: CatalogProvider | null;
  /** Maximum number of sessions per subject; further ones fail with 53300. Default 1,000. */
  readonly maxSubjectSessions?: number;
  /** Maximum number of sessions per client IPv4 address or IPv6 /64 network. Default 5,000. */
  readonly maxAddressSessions?: number;
  readonly acceptsSessions?: () => boolean;
  /** Counts open sessions to enforce the two limits above. Default: counts the sessions of this process only. */
  readonly sessions?: SessionCounts;
  /** Lists, cancels and ends the sessions of one caller. Default: sessions of this process only. */
  readonly callerSessions?: OwnSessions;
}

const MAX_SUBJECT_SESSIONS = 1_000;
const MAX_ADDRESS_SESSIONS = 5_000;

export interface PgFrontend extends WireServer {
  readonly register: SessionRegister;
  readonly fastQuestions: number;
}

export function createPgFrontend(service: SubscriptionParts, options: PgOptions = {}): PgFrontend {
  const {
    catalogs = null,
    maxSubjectSessions = MAX_SUBJECT_SESSIONS,
    maxAddressSessions = MAX_ADDRESS_SESSIONS,
    ...remaining
  } = options;
  const caps = { subject: maxSubjectSessions, address: maxAddressSessions };
  const {
    sessions = new LocalSessionCounts(caps),
    callerSessions: ownSessions,
    acceptsSessions = () => true,
    ...wire
  } = remaining;
  const register = new SessionRegister();
  const questions = new QuestionRouter(service);
  const server = createWireServer(
    {
      ...wire,
      startupParameters: STARTUP_PARAMETERS,
      onInternalError: (cause) =>
        service.log.error('internal error on the wire', {
          error: cause instanceof Error ? (cause.stack ?? cause.message) : String(cause),
        }),
    },
    handlerOf(
      service,
      catalogs,
      { sessions, register, callerSessions: ownSessions ?? register, acceptsSessions },
      questions,
    ),
  );
  // Ends revoked sessions immediately rather than at their next message.
  const unsubscribe = service.revoked.follow(() => register.endInvalid());
  return {
    listen: (port, host) => server.listen(port, host),
    stop: (deadlineMs) => server.stop(deadlineMs).finally(unsubscribe),
    secure: (tls) => server.secure(tls),
    cancel: (processId, key) => server.cancel(processId, key),
    register,
    get connections() {
      return server.connections;
    },
    get fastQuestions() {
      return questions.fastPathCount;
    },
  };
}

interface SessionAccess {
  readonly sessions: SessionCounts;
  readonly register: SessionRegister;
  readonly callerSessions: OwnSessions;
  acceptsSessions(): boolean;
}

function handlerOf(
  service: SubscriptionParts,
  catalogs: CatalogProvider | null,
  { sessions, register, callerSessions, acceptsSessions }: SessionAccess,
  questions: QuestionRouter,
): Handler {
  return {
    scramVerifier: (user) => {
      const { snapshot } = service.model();
      // The policy determines how users log in. Without a policy, refuse before asking for a password.
      if (snapshot === null) throw withoutPolicy();
      const account = snapshot.serviceAccounts.get(user);
      return account === undefined ? null : readScramVerifier(account.scram);
    },
    noteWrongPassword: (user, remoteAddress) => countWrongPassword(service, user, remoteAddress),
    authenticateByCertificate: (user, certificate) => subjectOf(service, certificate) === user,
    async authenticate({ user, database, password, certificate, parameters, remoteAddress }, control) {
      const call = bearerCall(remoteAddress, password);
      try {
        const tokenless = await loginWithoutToken(service, call, { user, password, certificate });
        const identity = tokenless?.identity ?? (await login(service, call, user));
        const refuse = (reason: WireError) => refusedLogin(service, call, identity, reason);
        if (database !== DATABASE) throw await refuse(noDatabase(database, DATABASE));
        if (!acceptsSessions()) throw await refuse(draining());
        const settings = new SessionSettings(user, await withResolvedZone(service, parameters));
        const release = await sessions.open(identity.subject, remoteAddress);
        if (release === null) throw await refuse(tooMany(identity));
        const owner = { identity, tokenless, address: remoteAddress, sessions: callerSessions, release };
        const session = new PgSession(service, owner, settings, control, catalogs, questions);
        session.register(register, control);
        return session;
      } catch (failure) {
        if (failure instanceof TooManyGuesses) throw wrongPassword(user);
        throw loginError(failure, call.requestId);
      }
    },
    recordRefusal: (event) => recordRefusedConnection(service, event),
  };
}

/**
 * Logs in a service account or certificate holder; returns null if a token was sent. Throws the same errors as
 * `accountLogin` and `certificateLogin`.
 */
async function loginWithoutToken(
  service: SubscriptionParts,
  call: RequestCall,
  { user, password, certificate }: Pick<WireLogin, 'user' | 'password' | 'certificate'>,
): Promise<TokenlessSession | null> {
  if (certificate !== null) return certificateLogin(service, call, user, readClientCertificate(certificate));
  return password === null ? accountLogin(service, call, user) : null;
}

function subjectOf({ model }: SubscriptionParts, certificate: X509Certificate): string | null {
  const { snapshot } = model();
  if (snapshot === null) throw withoutPolicy();
  return ruleFor(snapshot.certificates, readClientCertificate(certificate))?.subject ?? null;
}

function withoutPolicy(): WireError {
  const { sqlstate, message, code, hint } = queryError('noSnapshot', {});
  return fatal(sqlstate, message, { detail: code, ...(hint !== null && { hint }) });
}

export async function refusedLogin(
  service: RequestParts,
  { requestId }: RequestCall,
  identity: Identity,
  reason: WireError,
): Promise<WireError> {
  const call: RequestCall = { requestId, surface: 'wire', credentials: { kind: 'session', identity } };
  await refusedCommand(service, call, reason.sqlstate);
  return reason;
}

/** @param served name of the listener's only database */
export function noDatabase(requested: string, served: string): WireError {
  return fatal('3D000', `database "${requested}" does not exist`, { hint: `connect to database ${served}` });
}

function draining(): WireError {
  return fatal('57P03', 'the server takes no new sessions', {
    hint: 'connect again: another server may take it',
  });
}

function tooMany({ subject }: Identity): WireError {
  return fatal('53300', `too many connections for "${subject}", or from its address`, {
    hint: 'close some, or put a pooler in front',
  });
}

/** Creates a call with the token sent as password; an empty password counts as no token. */
export function bearerCall(address: string, password: string | null): RequestCall {
  const token = password === '' ? null : password;
  return { requestId: randomUUID(), surface: 'wire', credentials: { kind: 'bearer', token, address } };
}

/** Records a connection that failed before its session was open. */
export function recordRefusedConnection(
  parts: RequestParts,
  { kind, sqlstate, remoteAddress }: RefusedEvent,
): void {
  const call = bearerCall(remoteAddress, null);
  void refusedConnection(parts, call, `wire ${kind}`, sqlstate ?? DEFAULT_SQLSTATE[kind]);
}

/** SQLSTATE to record if no error message was sent to the client. */
const DEFAULT_SQLSTATE: Readonly<Record<RefusedEvent['kind'], string>> = {
  startup: '08P01',
  tls: '08P01',
  password: '28P01',
  timeout: '57014',
  capacity: '53300',
  cancel: '28000',
  abandoned: '08006',
};

import { TransformStream } from 'node:stream/web';
import { PostgresConnection, type PostgresConnectionOptions, verifyScramSha256Password } from 'pg-gateway';
import type { ScramVerifier } from './handler.js';
import { encodeStartupMessage } from './messages/startup.js';

interface ExchangeSteps {
  ask(request: Uint8Array): void;
  /** Reads and validates the next PasswordMessage; null if the client has disconnected. */
  answer(): Promise<Uint8Array<ArrayBuffer> | null>;
}

export interface PasswordSteps extends ExchangeSteps {
  verify(password: string): Promise<boolean>;
}

export interface ScramSteps extends ExchangeSteps {
  /** Called for a correct password. Returns false if the client is refused nevertheless. Must not throw. */
  proved(): Promise<boolean>;
  /** Called for a wrong password. Must not throw. */
  disproved(): Promise<void>;
}

/**
 * Runs `pg-gateway`'s password exchange over in-memory streams, through which it only receives validated messages,
 * never the socket or later messages. Resolves to AuthenticationOk, or null if the client was refused or disconnected.
 */
export function exchangePassword(user: string, steps: PasswordSteps): Promise<Uint8Array | null> {
  let verified = false;
  const auth = {
    method: 'password',
    getClearTextPassword: () => '',
    validateCredentials: async ({ password }: { password: string }) => {
      verified = await steps.verify(password);
      return verified;
    },
  } as const;
  return converse(user, auth, async (gateway) => {
    if (!(await gateway.turn(steps))) return null;
    const verdict = await gateway.receive();
    return verified ? verdict : null;
  });
}

/** Runs a SCRAM-SHA-256 exchange (RFC 5802), in which the password is never sent. */
export function exchangeScram(
  user: string,
  verifier: ScramVerifier,
  steps: ScramSteps,
): Promise<Uint8Array | null> {
  let verified = false;
  const auth = {
    method: 'scram-sha-256',
    getScramSha256Data: () => ({ ...verifier }),
    validateCredentials: async ({
      authMessage,
      clientProof,
    }: {
      authMessage: string;
      clientProof: string;
    }) => {
      const { storedKey } = verifier;
      const proved = await verifyScramSha256Password({ authMessage, clientProof, storedKey });
      if (!proved) await steps.disproved();
      verified = proved && (await steps.proved());
      return verified;
    },
  } as const;
  return converse(user, auth, async (gateway) => {
    if (!(await gateway.turn(steps))) return null; // AuthenticationSASL, client-first message
    if (!(await gateway.turn(steps))) return null; // AuthenticationSASLContinue, client-final message
    const final = await gateway.receive();
    if (!verified || final === null) return null;
    steps.ask(final);
    return gateway.receive();
  });
}

interface AuthenticationPeer {
  receive(): Promise<Uint8Array | null>;
  /**
   * Forwards one server message and the client's answer. Returns false if `pg-gateway` has ended or the client has
   * disconnected.
   */
  turn(steps: ExchangeSteps): Promise<boolean>;
}

/**
 * Runs `pg-gateway`. Its own `createDuplexPair` polls with a timer that never stops; these streams are event-driven.
 */
async function converse(
  user: string,
  auth: PostgresConnectionOptions['auth'],
  talk: (gateway: AuthenticationPeer) => Promise<Uint8Array | null>,
): Promise<Uint8Array | null> {
  const room = { highWaterMark: 16 };
  const toGateway = new TransformStream<Uint8Array, Uint8Array>(undefined, room, room);
  const fromGateway = new TransformStream<Uint8Array, Uint8Array>(undefined, room, room);
  new PostgresConnection(
    { readable: toGateway.readable, writable: fromGateway.writable },
    auth === undefined ? {} : { auth },
  );
  const writer = toGateway.writable.getWriter();
  const reader = fromGateway.readable.getReader();
  const receive = async (): Promise<Uint8Array | null> => {
    const { done, value } = await reader.read();
    return done ? null : value;
  };
  try {
    await writer.write(encodeStartupMessage(user));
    return await talk({
      receive,
      async turn(steps) {
        const request = await receive();
        if (request === null) return false;
        steps.ask(request);
        const answer = await steps.answer();
        if (answer === null) return false;
        await writer.write(answer);
        return true;
      },
    });
  } finally {
    // Ends the loop of `pg-gateway`, whose ReadyForQuery is not read.
    await writer.close();
  }
}

import { TransformStream } from 'node:stream/web';
import { PostgresConnection, type PostgresConnectionOptions, verifyScramSha256Password } from 'pg-gateway';
import type { ScramVerifier } from './handler.js';
import { encodeStartupMessage } from './messages/startup.js';

interface ExchangeSteps {
  /** Sends what the server says to the client. */
  ask(request: Uint8Array): void;
  /** The client's next PasswordMessage, whole and checked; null if it has gone. */
  answer(): Promise<Uint8Array<ArrayBuffer> | null>;
}

export interface PasswordSteps extends ExchangeSteps {
  /** Must not throw. */
  verify(password: string): Promise<boolean>;
}

export interface ScramSteps extends ExchangeSteps {
  /** The client knows the password. Must not throw. */
  proved(): Promise<boolean>;
  /** The client does not. Must not throw. */
  disproved(): Promise<void>;
}

/**
 * The startup and password exchange, done by `pg-gateway` over streams in memory. It is fed the messages that we
 * checked, one at a time, and is then let go: it sees neither the socket nor anything later. Resolves to its
 * AuthenticationOk, or to null if the client was refused or has gone.
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
    const verdict = await gateway.said();
    return verified ? verdict : null;
  });
}

/** Proves a password by SCRAM-SHA-256 (RFC 5802): the password itself never comes. */
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
    if (!(await gateway.turn(steps))) return null; // AuthenticationSASL, and the client's first message
    if (!(await gateway.turn(steps))) return null; // AuthenticationSASLContinue, and its final one
    const final = await gateway.said();
    if (!verified || final === null) return null;
    steps.ask(final);
    return gateway.said();
  });
}

interface Gateway {
  /** Next message; null if there is none. */
  said(): Promise<Uint8Array | null>;
  /** Passes on what it says, and the client's answer. False if there is no more. */
  turn(steps: ExchangeSteps): Promise<boolean>;
}

/** Its own `createDuplexPair` polls a timer for ever, also after the exchange; these streams wait for events. */
async function converse(
  user: string,
  auth: PostgresConnectionOptions['auth'],
  talk: (gateway: Gateway) => Promise<Uint8Array | null>,
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
  const said = async (): Promise<Uint8Array | null> => {
    const { done, value } = await reader.read();
    return done ? null : value;
  };
  try {
    await writer.write(encodeStartupMessage(user));
    return await talk({
      said,
      async turn(steps) {
        const request = await said();
        if (request === null) return false;
        steps.ask(request);
        const answer = await steps.answer();
        if (answer === null) return false;
        await writer.write(answer);
        return true;
      },
    });
  } finally {
    // Ends its loop; the ReadyForQuery that it has written by now stays unread.
    await writer.close();
  }
}

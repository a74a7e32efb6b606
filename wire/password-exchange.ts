import { TransformStream } from 'node:stream/web';
import { PostgresConnection, type PostgresConnectionOptions, verifyScramSha256Password } from 'pg-gateway';
import type { ScramVerifier } from './handler.js';
import { encodeStartupMessage } from './messages/startup.js';

interface ExchangeSteps {
  sendToClient(request: Uint8Array): void;
  /** Reads and validates the next PasswordMessage; null if the client has disconnected. */
  readPassword(): Promise<Uint8Array<ArrayBuffer> | null>;
}

export interface PasswordSteps extends ExchangeSteps {
  verify(password: string): Promise<boolean>;
}

export interface ScramSteps extends ExchangeSteps {
  /** Called for a correct password. Returns false if the client is refused nevertheless. Must not throw. */
  acceptProof(): Promise<boolean>;
  /** Called for a wrong password. Must not throw. */
  rejectProof(): Promise<void>;
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
  return runGateway(user, auth, async (gateway) => {
    if (!(await gateway.relay(steps))) return null;
    const okMessage = await gateway.receive();
    return verified ? okMessage : null;
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
      const isProven = await verifyScramSha256Password({ authMessage, clientProof, storedKey });
      if (!isProven) await steps.rejectProof();
      verified = isProven && (await steps.acceptProof());
      return verified;
    },
  } as const;
  return runGateway(user, auth, async (gateway) => {
    if (!(await gateway.relay(steps))) return null; // AuthenticationSASL, client-first message
    if (!(await gateway.relay(steps))) return null; // AuthenticationSASLContinue, client-final message
    const final = await gateway.receive();
    if (!verified || final === null) return null;
    steps.sendToClient(final);
    return gateway.receive();
  });
}

interface AuthenticationPeer {
  receive(): Promise<Uint8Array | null>;
  /**
   * Forwards one server message and the client's answer. Returns false if `pg-gateway` has ended or the client has
   * disconnected.
   */
  relay(steps: ExchangeSteps): Promise<boolean>;
}

/**
 * Runs `pg-gateway`. Its own `createDuplexPair` polls with a timer that never stops; these streams are event-driven.
 */
async function runGateway(
  user: string,
  auth: PostgresConnectionOptions['auth'],
  exchange: (gateway: AuthenticationPeer) => Promise<Uint8Array | null>,
): Promise<Uint8Array | null> {
  const strategy = { highWaterMark: 16 };
  const toGateway = new TransformStream<Uint8Array, Uint8Array>(undefined, strategy, strategy);
  const fromGateway = new TransformStream<Uint8Array, Uint8Array>(undefined, strategy, strategy);
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
    return await exchange({
      receive,
      async relay(steps) {
        const request = await receive();
        if (request === null) return false;
        steps.sendToClient(request);
        const answer = await steps.readPassword();
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

import { TransformStream } from 'node:stream/web';
import { PostgresConnection } from 'pg-gateway';
import { encodeStartupMessage } from './messages/startup.js';

export interface PasswordSteps {
  /** Sends the request for a password to the client. */
  ask(request: Uint8Array): void;
  /** The client's PasswordMessage, whole and checked; null if it has gone. */
  answer(): Promise<Uint8Array<ArrayBuffer> | null>;
  /** Must not throw. */
  verify(password: string): Promise<boolean>;
}

/**
 * The startup and cleartext-password exchange, done by `pg-gateway` over streams in memory. It is fed the two
 * messages that we checked, one at a time, and is then let go: it sees neither the socket nor anything later.
 * Resolves to its AuthenticationOk, or to null if the password was refused or never came.
 *
 * Its own `createDuplexPair` polls a timer for ever, also after the exchange; these streams wait for events.
 */
export async function exchangePassword(user: string, steps: PasswordSteps): Promise<Uint8Array | null> {
  const room = { highWaterMark: 16 };
  const toGateway = new TransformStream<Uint8Array, Uint8Array>(undefined, room, room);
  const fromGateway = new TransformStream<Uint8Array, Uint8Array>(undefined, room, room);
  let verified = false;
  new PostgresConnection(
    { readable: toGateway.readable, writable: fromGateway.writable },
    {
      auth: {
        method: 'password',
        getClearTextPassword: () => '',
        validateCredentials: async ({ password }) => {
          verified = await steps.verify(password);
          return verified;
        },
      },
    },
  );
  const writer = toGateway.writable.getWriter();
  const reader = fromGateway.readable.getReader();
  try {
    await writer.write(encodeStartupMessage(user));
    const request = await reader.read();
    if (request.done) return null;
    steps.ask(request.value);
    const answer = await steps.answer();
    if (answer === null) return null;
    await writer.write(answer);
    const verdict = await reader.read();
    return verified && !verdict.done ? verdict.value : null;
  } finally {
    // Ends its loop; the ReadyForQuery that it has written by now stays unread.
    await writer.close();
  }
}

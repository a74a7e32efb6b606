import type { X509Certificate } from 'node:crypto';
import type { Socket } from 'node:net';
import { type SecureContext, TLSSocket } from 'node:tls';
import type { CancelKeys } from './cancel-keys.js';
import { fatal } from './errors.js';
import type { SocketReader } from './input.js';
import {
  decodeStartupPacket,
  NEWEST_MINOR,
  negotiateProtocolVersion,
  type StartupMessage,
  type StartupPacket,
  unsupportedVersion,
} from './messages/startup.js';
import type { SocketWriter } from './output.js';

/** First byte of a TLS handshake record; no startup packet of legal length begins with it. */
const TLS_HANDSHAKE = 0x16;
const ALPN = 'postgresql';

export interface TlsHandshake {
  readonly context: SecureContext;
  readonly direct: boolean;
  readonly clients: 'asked' | 'demanded' | null;
}

/** Dependencies of the handshake on its connection. */
export interface HandshakeSide {
  readonly input: SocketReader;
  readonly output: SocketWriter;
  readonly tls: TlsHandshake | null;
  readonly cancelKeys: CancelKeys;
  readonly socket: Socket;
  readonly encrypted: boolean;
  /** From now on a packet is waited for, or it has come whole. Until it has, the client is told nothing. */
  awaitPacket(yes: boolean): void;
  /** From now on everything goes through this socket. */
  useTls(socket: TLSSocket): void;
  /** The client has this certificate, and an authority vouches for it. */
  useCertificate(certificate: X509Certificate): void;
  /** A CancelRequest with a wrong key: closed without an answer, and recorded. */
  recordWrongCancelKey(): void;
}

/**
 * Everything before the startup message: encryption requests (one of each at most, CVE-2026-6479), direct TLS,
 * cancel requests. Resolves to the startup message, or to null when there is nothing more to say. Throws FATAL
 * 08P01 and 0A000. As with Postgres, whoever sends no whole packet is told nothing, and a cancel request has no answer.
 */
export async function handshake(side: HandshakeSide): Promise<StartupMessage | null> {
  if (!(await acceptDirectTls(side))) return null;
  let sslAsked = side.encrypted;
  let gssAsked = side.encrypted;
  for (;;) {
    const packet = await nextPacket(side);
    switch (packet?.kind) {
      case undefined:
        return null;
      case 'ssl':
        if (sslAsked) throw unsupportedVersion(1234, 5679);
        sslAsked = true;
        if (await answerSslRequest(side)) gssAsked = true;
        break;
      case 'gssenc':
        if (gssAsked) throw unsupportedVersion(1234, 5680);
        gssAsked = true;
        refuseEncryption(side);
        break;
      case 'cancel':
        if (!(await side.cancelKeys.cancel(packet.processId, packet.key))) side.recordWrongCancelKey();
        return null;
      case 'startup':
        negotiateVersion(side.output, packet);
        return packet;
    }
  }
}

async function nextPacket(side: HandshakeSide): Promise<StartupPacket | null> {
  const { input } = side;
  side.awaitPacket(true);
  for (;;) {
    if (input.ended) return null;
    const body = input.decoder.startup();
    if (body !== null) {
      side.awaitPacket(false);
      return decodeStartupPacket(body);
    }
    await input.more();
  }
}

/** True if the connection is encrypted now. */
async function answerSslRequest(side: HandshakeSide): Promise<boolean> {
  if (side.tls === null) {
    refuseEncryption(side);
    return false;
  }
  requireNothingBuffered(side.input);
  side.input.detach();
  side.socket.write('S');
  await upgrade(side, side.tls);
  return true;
}

function refuseEncryption(side: HandshakeSide): void {
  requireNothingBuffered(side.input);
  side.socket.write('N');
}

/** Unencrypted bytes in the same segment may be an attacker's (CVE-2021-23214) and are never processed. */
function requireNothingBuffered(input: SocketReader): void {
  if (input.decoder.buffered > 0) throw fatal('08P01', 'received unencrypted data after encryption request');
}

/** False if the connection is over. */
async function acceptDirectTls(side: HandshakeSide): Promise<boolean> {
  const { input, tls } = side;
  while (input.decoder.peek() === null) {
    if (input.ended) return false;
    await input.more();
  }
  if (tls === null || !tls.direct || input.decoder.peek() !== TLS_HANDSHAKE) return true;
  const hello = input.decoder.takeAll();
  input.detach();
  side.socket.unshift(hello);
  const secure = await upgrade(side, tls);
  // As in Postgres 17: without ALPN another protocol's client could be steered here.
  if (secure.alpnProtocol !== ALPN)
    throw fatal('08P01', 'direct TLS requires the ALPN protocol `postgresql`');
  return true;
}

async function upgrade(side: HandshakeSide, { context, clients }: TlsHandshake): Promise<TLSSocket> {
  const secure = new TLSSocket(side.socket, {
    isServer: true,
    secureContext: context,
    ALPNProtocols: [ALPN],
    requestCert: clients !== null,
    rejectUnauthorized: false, // judged below, so that the client can be told
  });
  side.useTls(secure);
  await new Promise<void>((resolve, reject) => {
    const fail = () => reject(fatal('08P01', 'TLS handshake failed'));
    secure.once('secure', resolve);
    secure.once('error', fail);
    secure.once('close', fail);
  });
  if (clients !== null) requireVouched(side, secure, clients);
  return secure;
}

/** A certificate that nobody vouches for is refused, not overlooked: whoever shows one means to be somebody. */
function requireVouched(side: HandshakeSide, secure: TLSSocket, clients: 'asked' | 'demanded'): void {
  const shown = secure.getPeerX509Certificate();
  if (shown === undefined) {
    if (clients === 'demanded') throw fatal('28000', 'connection requires a valid client certificate');
    return;
  }
  const fault = verdictOn(secure);
  if (fault !== null) throw fatal('28000', `the client certificate is not valid: ${fault}`);
  side.useCertificate(shown);
}

/** Node tells servers of its own alone what OpenSSL made of the peer's certificate; this is where it has that from. */
interface VerifyingSocket {
  readonly _handle?: { readonly verifyError?: () => Error | null };
}

/** Null where an authority vouches for it. */
function verdictOn(secure: TLSSocket): string | null {
  const handle = (secure as unknown as VerifyingSocket)._handle;
  if (handle?.verifyError === undefined) return 'it could not be checked';
  const error = handle.verifyError();
  return error === null ? null : error.message;
}

/** Versions 3.3 and up and unknown `_pq_.` options: says what is spoken here, and goes on. */
function negotiateVersion(output: SocketWriter, startup: StartupMessage): void {
  if (startup.minor <= NEWEST_MINOR && startup.protocolOptions.length === 0) return;
  negotiateProtocolVersion(output.messages, startup.protocolOptions);
}

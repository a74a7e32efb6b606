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

/** The first byte of a TLS handshake record; no startup packet of valid length begins with it. */
const TLS_HANDSHAKE = 0x16;
const ALPN = 'postgresql';

export interface TlsHandshake {
  readonly context: SecureContext;
  readonly direct: boolean;
  readonly clients: 'asked' | 'demanded' | null;
}

export interface HandshakeConnection {
  readonly input: SocketReader;
  readonly output: SocketWriter;
  readonly tls: TlsHandshake | null;
  readonly cancelKeys: CancelKeys;
  readonly socket: Socket;
  readonly encrypted: boolean;
  /**
   * Called with true before waiting for a packet, and with false once it is complete. In between, a failure ends the
   * connection without an error message.
   */
  awaitPacket(isWaiting: boolean): void;
  useTls(socket: TLSSocket): void;
  /** Called with a certificate verified by a trusted authority. */
  useCertificate(certificate: X509Certificate): void;
  /** Records a CancelRequest with a wrong key, which gets no answer. */
  recordWrongCancelKey(): void;
}

/**
 * Handles everything before the startup message: encryption requests (at most one of each, CVE-2026-6479), direct TLS,
 * cancel requests. Resolves to the startup message, or null if the connection is finished. As in Postgres, incomplete
 * packets get no error and cancel requests get no answer. Throws FATAL 08P01 and 0A000.
 */
export async function handshake(connection: HandshakeConnection): Promise<StartupMessage | null> {
  if (!(await acceptDirectTls(connection))) return null;
  let sslRequested = connection.encrypted;
  let gssRequested = connection.encrypted;
  for (;;) {
    const packet = await nextPacket(connection);
    switch (packet?.kind) {
      case undefined:
        return null;
      case 'ssl':
        if (sslRequested) throw unsupportedVersion(1234, 5679);
        sslRequested = true;
        if (await answerSslRequest(connection)) gssRequested = true;
        break;
      case 'gssenc':
        if (gssRequested) throw unsupportedVersion(1234, 5680);
        gssRequested = true;
        refuseEncryption(connection);
        break;
      case 'cancel':
        if (!(await connection.cancelKeys.cancel(packet.processId, packet.key)))
          connection.recordWrongCancelKey();
        return null;
      case 'startup':
        negotiateVersion(connection.output, packet);
        return packet;
    }
  }
}

async function nextPacket(connection: HandshakeConnection): Promise<StartupPacket | null> {
  const { input } = connection;
  connection.awaitPacket(true);
  for (;;) {
    if (input.ended) return null;
    const body = input.decoder.startup();
    if (body !== null) {
      connection.awaitPacket(false);
      return decodeStartupPacket(body);
    }
    await input.waitForMore();
  }
}

/** Answers SSLRequest; returns true if the connection is now encrypted. */
async function answerSslRequest(connection: HandshakeConnection): Promise<boolean> {
  if (connection.tls === null) {
    refuseEncryption(connection);
    return false;
  }
  requireNothingBuffered(connection.input);
  connection.input.detach();
  connection.socket.write('S');
  await upgrade(connection, connection.tls);
  return true;
}

function refuseEncryption(connection: HandshakeConnection): void {
  requireNothingBuffered(connection.input);
  connection.socket.write('N');
}

/** Refuses unencrypted bytes that arrived with the request: they may come from an attacker (CVE-2021-23214). */
function requireNothingBuffered(input: SocketReader): void {
  if (input.decoder.buffered > 0) throw fatal('08P01', 'received unencrypted data after encryption request');
}

/** Accepts TLS without SSLRequest; returns false if the connection has ended. */
async function acceptDirectTls(connection: HandshakeConnection): Promise<boolean> {
  const { input, tls } = connection;
  while (input.decoder.peek() === null) {
    if (input.ended) return false;
    await input.waitForMore();
  }
  if (tls === null || !tls.direct || input.decoder.peek() !== TLS_HANDSHAKE) return true;
  const bufferedBytes = input.decoder.takeAll();
  input.detach();
  connection.socket.unshift(bufferedBytes);
  const secure = await upgrade(connection, tls);
  // As in Postgres 17: without ALPN, a client of another protocol could be redirected here.
  if (secure.alpnProtocol !== ALPN)
    throw fatal('08P01', 'direct TLS requires the ALPN protocol `postgresql`');
  return true;
}

async function upgrade(
  connection: HandshakeConnection,
  { context, clients }: TlsHandshake,
): Promise<TLSSocket> {
  const secure = new TLSSocket(connection.socket, {
    isServer: true,
    secureContext: context,
    ALPNProtocols: [ALPN],
    requestCert: clients !== null,
    rejectUnauthorized: false, // checked below, so that the client gets an error message
  });
  connection.useTls(secure);
  await new Promise<void>((resolve, reject) => {
    const fail = () => reject(fatal('08P01', 'TLS handshake failed'));
    secure.once('secure', resolve);
    secure.once('error', fail);
    secure.once('close', fail);
  });
  if (clients !== null) requireValidCertificate(connection, secure, clients);
  return secure;
}

/** Refuses an invalid client certificate instead of ignoring it, and a missing one if certificates are demanded. */
function requireValidCertificate(
  connection: HandshakeConnection,
  secure: TLSSocket,
  clients: 'asked' | 'demanded',
): void {
  const certificate = secure.getPeerX509Certificate();
  if (certificate === undefined) {
    if (clients === 'demanded') throw fatal('28000', 'connection requires a valid client certificate');
    return;
  }
  const fault = certificateFault(secure);
  if (fault !== null) throw fatal('28000', `the client certificate is not valid: ${fault}`);
  connection.useCertificate(certificate);
}

/** Node's internal handle with OpenSSL's verification result, which Node exposes only through its own TLS server. */
interface VerifyingSocket {
  readonly _handle?: { readonly verifyError?: () => Error | null };
}

function certificateFault(secure: TLSSocket): string | null {
  const handle = (secure as unknown as VerifyingSocket)._handle;
  if (handle?.verifyError === undefined) return 'it could not be checked';
  const error = handle.verifyError();
  return error === null ? null : error.message;
}

/** Handles versions above 3.2 and unknown `_pq_.` options: sends the supported version and continues. */
function negotiateVersion(output: SocketWriter, startup: StartupMessage): void {
  if (startup.minor <= NEWEST_MINOR && startup.protocolOptions.length === 0) return;
  negotiateProtocolVersion(output.messages, startup.protocolOptions);
}

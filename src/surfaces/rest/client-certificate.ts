import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { readClientCertificate } from '../../../policy/index.js';
import type { ShownCertificate } from '../../ask/request/call.js';

/** What connections have shown, which is read once for all their requests. */
const read = new WeakMap<TLSSocket, ShownCertificate>();

/** The certificate that the client of a connection showed; null where no authority vouches for it; undefined for none. */
export function certificateOf(socket: Socket): ShownCertificate | undefined {
  if (!(socket instanceof TLSSocket)) return undefined;
  const known = read.get(socket);
  if (known !== undefined) return known;
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) return undefined;
  const shown = socket.authorized ? readClientCertificate(certificate) : null;
  read.set(socket, shown);
  return shown;
}

/** Other authorities vouch for clients now: what the connection showed under others is good for nothing more. */
export function distrust(socket: TLSSocket): void {
  if (certificateOf(socket) !== undefined) read.set(socket, null);
}

import { type OnReadOpts, Socket, type SocketConstructorOpts } from 'node:net';

/** What one read of a socket may bring. */
const READ_BYTES = 65_536;
const SLAB_BYTES = 262_144;

let slab: Buffer = Buffer.alloc(0);
let used = 0;

/** A copy of `bytes` in a slab that many reads share, which nobody else writes to. */
function kept(bytes: Uint8Array): Buffer {
  if (used + bytes.length > slab.length) {
    slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
    used = 0;
  }
  const copy = slab.subarray(used, used + bytes.length);
  copy.set(bytes);
  used += bytes.length;
  return copy;
}

/**
 * A socket whose reads share slabs. Of itself Node takes 64 KiB for each read and gives back what is left over, as an
 * allocation of its own: an answer that comes in pieces of 8 KiB costs more in memory that is collected than in work.
 */
export function slabSocket(): Socket {
  const onread: OnReadOpts = {
    buffer: Buffer.allocUnsafeSlow(READ_BYTES),
    callback: (length, buffer) => {
      socket.emit('data', kept(buffer.subarray(0, length)));
      return true;
    },
  };
  // Its types have this of `connect` alone, which looks for it where the socket is made.
  const options: SocketConstructorOpts & { readonly onread: OnReadOpts } = { onread };
  const socket = new Socket(options);
  return socket;
}

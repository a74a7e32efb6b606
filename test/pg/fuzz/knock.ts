import { setTimeout } from 'node:timers/promises';
import { cut, type Message, reportOf } from './conversation.js';
import { Line, outline } from './player.js';
import { hiddenIn } from './world.js';

/** So long a silence means that the server waits for more; where it was only slow, less is tried. */
export const SILENCE_MS = 30;
const PATIENCE_MS = 30_000;
const ENCRYPTION_REQUESTS = [80877103, 80877104];

/**
 * A connection that sends these writes and then closes its side, at the latest after `silenceMs` without an answer.
 * What came; throws where that is no protocol.
 */
export async function knock(
  port: number,
  writes: readonly Buffer[],
  silenceMs = PATIENCE_MS,
): Promise<string> {
  const line = new Line(port);
  const chunks: Buffer[] = [];
  const ready = (): boolean => /Z\0\0\0\x05I$/.test(Buffer.concat(chunks).toString('latin1'));
  for (const [i, bytes] of writes.entries()) {
    if (i > 0) await setTimeout(2);
    line.socket.write(bytes);
  }
  while (!line.closed && !ready() && (await line.more(silenceMs))) chunks.push(line.takeRaw());
  line.socket.end();
  while (!line.closed) if (!(await line.more(PATIENCE_MS))) throw new Error('the server does not hang up');
  chunks.push(line.takeRaw());
  line.socket.destroy();
  return read(Buffer.concat(chunks), refusalsOfEncryption(Buffer.concat(writes)));
}

/** How many bare `N` may come: one for each kind of request at the front. */
function refusalsOfEncryption(sent: Buffer): number {
  let count = 0;
  while (sent.length >= 8 * count + 8 && count < 2) {
    if (sent.readUInt32BE(8 * count) !== 8) break;
    if (!ENCRYPTION_REQUESTS.includes(sent.readUInt32BE(8 * count + 4))) break;
    count++;
  }
  return count;
}

function read(bytes: Buffer, most: number): string {
  let bare = 0;
  while (bare < most && bytes[bare] === 0x4e) bare++;
  const { messages, rest, fault } = cut(bytes.subarray(bare), 'server');
  if (fault !== null || rest.length > 0)
    throw new Error(`the server sent no message: ${fault ?? 'a torn one'}`);
  const hidden = hiddenIn(bytes);
  if (hidden.length > 0) throw new Error(`the server shows ${hidden.join(', ')}`);
  for (const message of messages) judge(message);
  const types = messages.map((m) => m.type).join('');
  if (!/^v?(R*E?|R+S+KZ(E)?)$/.test(types)) throw new Error(`the server says ${types}`);
  return `${'N'.repeat(bare)}${outline(messages)}`;
}

function judge({ type, body }: Message): void {
  if (type !== 'E') return;
  const report = reportOf(body);
  if (report.get('S') !== 'FATAL' || report.get('C') === 'XX000')
    throw new Error(`the server says ${[...report.values()].join(' ')}`);
}

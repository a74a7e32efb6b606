import { setTimeout } from 'node:timers/promises';
import { startup } from '../../../wire/support/bytes.js';
import { ScramClient } from '../../../wire/support/scram.js';
import { cut, type Message, reportOf } from './conversation.js';
import { Line, outline } from './player.js';
import { hiddenIn, PASSWORD } from './world.js';

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

/**
 * A whole login by SCRAM, of which each message may be changed before it is sent: `startup`, `first` and `final`; a
 * silence of `silenceMs` ends the wait for each answer. What came; throws where that is no protocol, or where another proof than the right one opened a session.
 */
export async function exchange(
  port: number,
  account: string,
  change: (message: Buffer, which: 'startup' | 'first' | 'final') => Buffer,
  silenceMs = PATIENCE_MS,
): Promise<string> {
  const line = new Line(port);
  const scram = new ScramClient(PASSWORD, 'fyko+d2lbbFgONRv9qkx');
  const chunks: Buffer[] = [];
  const heard = (): Buffer => Buffer.concat(chunks);
  const challenge = (): Buffer | undefined =>
    cut(heard(), 'server').messages.find((m) => m.type === 'R' && m.body.readInt32BE(0) === 11)?.body;
  let proved = true;
  const say = (which: 'first' | 'final', message: Buffer): void => {
    const changed = change(message, which);
    if (!changed.subarray(0, message.length).equals(message)) proved = false;
    line.socket.write(changed);
  };
  line.socket.write(change(startup({ user: account, database: 'osl' }), 'startup'));
  while (!line.closed && heard().length < 9 && (await line.more(silenceMs))) chunks.push(line.takeRaw());
  say('first', scram.first());
  while (!line.closed && challenge() === undefined && (await line.more(silenceMs)))
    chunks.push(line.takeRaw());
  say('final', scram.final(challenge() ?? Buffer.from('\0\0\0\x0br=none,s=bm9uZQ==,i=4096')));
  while (!line.closed && !READY.test(heard().toString('latin1')) && (await line.more(silenceMs)))
    chunks.push(line.takeRaw());
  line.socket.end();
  while (!line.closed) if (!(await line.more(PATIENCE_MS))) throw new Error('the server does not hang up');
  chunks.push(line.takeRaw());
  line.socket.destroy();
  const opened = READY.test(heard().toString('latin1'));
  if (opened && !proved) throw new Error('a session without proof of the password');
  return read(heard(), 0);
}

/** ReadyForQuery at the end. */
const READY = /Z\0\0\0\x05I/;

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

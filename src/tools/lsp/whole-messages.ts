import { Readable } from 'node:stream';

/** Bytes of one message: an editor sends a file whole, and files are 32 MiB at most. */
const LARGEST_MESSAGE = 256 * 1024 * 1024;
/** Bytes of a header. */
const LARGEST_HEADER = 8_192;
const END = Buffer.from('\r\n\r\n');

/**
 * The messages of a stream, each whole, without what is none: the reader of the protocol's library would wait for the next
 * bytes after a header that it cannot read, with a request behind it that nobody answers.
 */
export function wholeMessages(input: Readable): Readable {
  return Readable.from(messagesIn(input), { objectMode: false });
}

async function* messagesIn(input: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let chunks: Buffer[] = [];
  let held = 0;
  /** Of the message that is coming, its header included; 0 before its header is known. */
  let wanted = 0;
  for await (const chunk of input) {
    chunks.push(chunk);
    held += chunk.length;
    if (held < wanted) continue;
    let rest = Buffer.concat(chunks);
    for (;;) {
      if (wanted === 0) {
        const end = rest.subarray(0, LARGEST_HEADER).indexOf(END);
        if (end < 0) {
          if (rest.length > LARGEST_HEADER) rest = rest.subarray(rest.length - END.length);
          break;
        }
        const length = lengthIn(rest.toString('latin1', 0, end));
        if (length === null) {
          rest = rest.subarray(end + END.length);
          continue;
        }
        wanted = end + END.length + length;
      }
      if (rest.length < wanted) break;
      yield rest.subarray(0, wanted);
      rest = rest.subarray(wanted);
      wanted = 0;
    }
    [chunks, held] = [[rest], rest.length];
  }
}

/** What a header says of the length of its body, in bytes; null where it says none that can be. */
function lengthIn(header: string): number | null {
  const [, digits = ''] = /^content-length:[ \t]*(\d{1,10})[ \t]*$/im.exec(header) ?? [];
  const length = digits === '' ? Number.NaN : Number(digits);
  return length <= LARGEST_MESSAGE ? length : null;
}

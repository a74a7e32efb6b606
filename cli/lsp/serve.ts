import { Readable, type Writable } from 'node:stream';
import {
  CodeActionKind,
  createConnection,
  type InitializeResult,
  ProposedFeatures,
  StreamMessageReader,
  StreamMessageWriter,
  TextDocumentSyncKind,
} from 'vscode-languageserver/node';
import { version } from '../../src/base/package-root.js';
import { Editing } from './editing.js';
import type { LspOptions } from './projects.js';

const CAPABILITIES: InitializeResult['capabilities'] = {
  textDocumentSync: { openClose: true, change: TextDocumentSyncKind.Incremental, save: true },
  completionProvider: { triggerCharacters: ['.', ' ', '[', '{', ',', '"', "'", '-'] },
  hoverProvider: true,
  definitionProvider: true,
  documentSymbolProvider: true,
  codeActionProvider: { codeActionKinds: [CodeActionKind.QuickFix] },
};

/** Serves the Language Server Protocol until the editor says `exit`, or its stream ends; gives the exit status. */
export async function serveLsp(input: Readable, output: Writable, options: LspOptions): Promise<number> {
  const reader = new StreamMessageReader(wholeMessages(input));
  const connection = createConnection(ProposedFeatures.all, reader, new StreamMessageWriter(output));
  const editing = new Editing(connection, options);
  let orderly = false;
  connection.onInitialize(() => ({
    capabilities: CAPABILITIES,
    serverInfo: { name: 'osl', version: version() },
  }));
  connection.onShutdown(() => {
    orderly = true;
  });
  const ended = new Promise<number>((resolve) => {
    connection.onExit(() => resolve(orderly ? 0 : 1));
    input.once('end', () => resolve(orderly ? 0 : 1)).once('close', () => resolve(orderly ? 0 : 1));
  });
  editing.listen();
  connection.listen();
  const status = await ended;
  await editing.close();
  return status;
}

/** Bytes of one message: an editor sends a file whole, and files are 32 MiB at most. */
const LARGEST_MESSAGE = 256 * 1024 * 1024;
/** Bytes of a header. */
const LARGEST_HEADER = 8_192;
const END = Buffer.from('\r\n\r\n');

/**
 * The messages of a stream, each whole, without what is none: the reader of the protocol's library would wait for the next
 * bytes after a header that it cannot read, with a request behind it that nobody answers.
 */
function wholeMessages(input: Readable): Readable {
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

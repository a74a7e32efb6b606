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
import { EditorSession } from './editing.js';
import type { LspOptions } from './projects.js';

const CAPABILITIES: InitializeResult['capabilities'] = {
  textDocumentSync: { openClose: true, change: TextDocumentSyncKind.Incremental, save: true },
  completionProvider: { triggerCharacters: ['.', ' ', '[', '{', ',', '"', "'", '-'] },
  hoverProvider: true,
  definitionProvider: true,
  documentSymbolProvider: true,
  codeActionProvider: { codeActionKinds: [CodeActionKind.QuickFix] },
};

/** Serves the Language Server Protocol until `exit` or the end of the stream; resolves with the exit status. */
export async function serveLsp(input: Readable, output: Writable, options: LspOptions): Promise<number> {
  const reader = new StreamMessageReader(wholeMessages(input));
  const connection = createConnection(ProposedFeatures.all, reader, new StreamMessageWriter(output));
  const editing = new EditorSession(connection, options);
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

/** Maximum size of a message in bytes. Editors send whole files, of at most 32 MiB. */
const LARGEST_MESSAGE = 256 * 1024 * 1024;
const LARGEST_HEADER = 8_192;
const END = Buffer.from('\r\n\r\n');

/**
 * Splits the stream into complete messages and drops anything else: after an unreadable header, the protocol library
 * would wait forever and leave requests unanswered.
 */
function wholeMessages(input: Readable): Readable {
  return Readable.from(messagesIn(input), { objectMode: false });
}

async function* messagesIn(input: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let chunks: Buffer[] = [];
  let held = 0;
  /** Length of the incoming message including its header; 0 until the header is known. */
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

function lengthIn(header: string): number | null {
  const [, digits = ''] = /^content-length:[ \t]*(\d{1,10})[ \t]*$/im.exec(header) ?? [];
  const length = digits === '' ? Number.NaN : Number(digits);
  return length <= LARGEST_MESSAGE ? length : null;
}

import type { Readable, Writable } from 'node:stream';
import {
  CodeActionKind,
  createConnection,
  type InitializeResult,
  ProposedFeatures,
  StreamMessageReader,
  StreamMessageWriter,
  TextDocumentSyncKind,
} from 'vscode-languageserver/node';
import { version } from '../../base/package-root.js';
import { Editing } from './editing.js';
import type { LspOptions } from './projects.js';
import { wholeMessages } from './whole-messages.js';

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

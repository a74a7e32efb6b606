import { type ChildProcess, spawn } from 'node:child_process';
import { pathToFileURL } from 'node:url';
import {
  createMessageConnection,
  type MessageConnection,
  StreamMessageReader,
  StreamMessageWriter,
} from 'vscode-jsonrpc/node';
import type {
  CodeAction,
  CompletionList,
  Diagnostic,
  DocumentSymbol,
  Hover,
  InitializeResult,
  Location,
  PublishDiagnosticsParams,
} from 'vscode-languageserver-protocol';
import { BIN, ROOT } from '../cli/support.js';

/** An editor that has started the real `osl lsp`. */
export class Editor {
  readonly child: ChildProcess;
  readonly connection: MessageConnection;
  readonly ended: Promise<number | null>;
  stderr = '';
  readonly #diagnostics = new Map<string, PublishDiagnosticsParams>();
  readonly #versions = new Map<string, number>();
  readonly #texts = new Map<string, string>();
  #heard: () => void = () => undefined;

  private constructor(args: readonly string[]) {
    const child = spawn(process.execPath, [...process.execArgv, BIN, 'lsp', '--stdio', ...args], {
      cwd: ROOT,
      stdio: 'pipe',
    });
    this.child = child;
    this.connection = createMessageConnection(
      new StreamMessageReader(child.stdout),
      new StreamMessageWriter(child.stdin),
    );
    child.stderr.on('data', (text: Buffer) => {
      this.stderr += text;
    });
    this.ended = new Promise((resolve) => child.once('close', resolve));
    this.connection.onNotification('textDocument/publishDiagnostics', (said: PublishDiagnosticsParams) => {
      this.#diagnostics.set(said.uri, said);
      this.#heard();
    });
    this.connection.listen();
  }

  static async start(
    t: { teardown(work: () => void): void },
    ...args: readonly string[]
  ): Promise<{ readonly editor: Editor; readonly said: InitializeResult }> {
    const editor = new Editor(args);
    t.teardown(() => editor.child.kill('SIGKILL'));
    const said = await editor.connection.sendRequest<InitializeResult>('initialize', {
      processId: process.pid,
      rootUri: null,
      capabilities: {},
    });
    await editor.connection.sendNotification('initialized', {});
    return { editor, said };
  }

  /** Opens a file with a text, which need not be on disk. */
  async open(file: string, text: string): Promise<void> {
    const uri = pathToFileURL(file).href;
    this.#versions.set(uri, 1);
    this.#texts.set(uri, text);
    this.#diagnostics.delete(uri);
    const languageId = file.endsWith('.osql') ? 'osql' : 'yaml';
    await this.connection.sendNotification('textDocument/didOpen', {
      textDocument: { uri, languageId, version: 1, text },
    });
  }

  /** Replaces the one place where `from` stands. */
  async change(file: string, from: string, to: string): Promise<void> {
    const uri = pathToFileURL(file).href;
    const text = this.#texts.get(uri) ?? '';
    const at = text.indexOf(from);
    if (at < 0 || text.includes(from, at + 1)) throw new Error(`\`${from}\` is not there once`);
    const version = (this.#versions.get(uri) ?? 0) + 1;
    this.#versions.set(uri, version);
    this.#texts.set(
      uri,
      text.replace(from, () => to),
    );
    const range = { start: positionIn(text, at), end: positionIn(text, at + from.length) };
    await this.connection.sendNotification('textDocument/didChange', {
      textDocument: { uri, version },
      contentChanges: [{ range, text: to }],
    });
  }

  async close(file: string): Promise<void> {
    await this.connection.sendNotification('textDocument/didClose', {
      textDocument: { uri: pathToFileURL(file).href },
    });
  }

  /** What was last said of a file as it is now, once something was; of `count` diagnostics, where that is told. */
  async diagnostics(file: string, count: number | null = null): Promise<readonly Diagnostic[]> {
    const uri = pathToFileURL(file).href;
    for (;;) {
      const said = this.#diagnostics.get(uri);
      const isNow = said !== undefined && said.version === this.#versions.get(uri);
      if (isNow && (count === null || said.diagnostics.length === count)) return said.diagnostics;
      await new Promise<void>((resolve) => {
        this.#heard = resolve;
      });
    }
  }

  /** True if there are diagnostics of the file as it is now. */
  hasHeardOf(file: string): boolean {
    const uri = pathToFileURL(file).href;
    return this.#diagnostics.get(uri)?.version === this.#versions.get(uri);
  }

  /** The labels of what may stand behind the first `|` of `marked`, which is all of the file's text then. */
  async complete(file: string, marked: string): Promise<readonly string[]> {
    return ((await this.completions(file, marked))?.items ?? []).map(({ label }) => label);
  }

  async completions(file: string, marked: string): Promise<CompletionList | null> {
    const params = await this.#at(file, marked);
    return this.connection.sendRequest('textDocument/completion', params);
  }

  async hover(file: string, marked: string): Promise<string> {
    const params = await this.#at(file, marked);
    const said = await this.connection.sendRequest<Hover | null>('textDocument/hover', params);
    const { contents } = said ?? { contents: '' };
    return typeof contents === 'object' && 'value' in contents ? contents.value : `${contents}`;
  }

  /** The marked line of where it leads to, and its file's last part. */
  async definition(file: string, marked: string): Promise<Location | null> {
    return this.connection.sendRequest('textDocument/definition', await this.#at(file, marked));
  }

  symbols(file: string): Promise<readonly DocumentSymbol[]> {
    const textDocument = { uri: pathToFileURL(file).href };
    return this.connection.sendRequest('textDocument/documentSymbol', { textDocument });
  }

  actions(file: string, diagnostics: readonly Diagnostic[]): Promise<readonly CodeAction[]> {
    return this.connection.sendRequest('textDocument/codeAction', {
      textDocument: { uri: pathToFileURL(file).href },
      range: { start: { line: 0, character: 0 }, end: { line: 0, character: 0 } },
      context: { diagnostics },
    });
  }

  async #at(file: string, marked: string) {
    const at = marked.indexOf('|');
    const text = marked.slice(0, at) + marked.slice(at + 1);
    const uri = pathToFileURL(file).href;
    if (this.#texts.get(uri) !== text) {
      const version = (this.#versions.get(uri) ?? 0) + 1;
      this.#versions.set(uri, version);
      this.#texts.set(uri, text);
      await this.connection.sendNotification('textDocument/didChange', {
        textDocument: { uri, version },
        contentChanges: [{ text }],
      });
    }
    return { textDocument: { uri }, position: positionIn(text, at) };
  }
}

function positionIn(text: string, at: number): { readonly line: number; readonly character: number } {
  const before = text.slice(0, at).split('\n');
  return { line: before.length - 1, character: before.at(-1)?.length ?? 0 };
}

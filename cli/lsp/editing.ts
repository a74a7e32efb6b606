import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import {
  type CodeAction,
  CodeActionKind,
  type CodeActionParams,
  type Connection,
  type Definition,
  type Diagnostic,
  DiagnosticSeverity,
  type DocumentSymbol,
  type Hover,
  MarkupKind,
  type Position,
  type Range,
  SymbolKind,
  TextDocuments,
  type TextEdit,
} from 'vscode-languageserver/node';
import { TextDocument } from 'vscode-languageserver-textdocument';
import type { Diagnostic as Fault, TextRange as FileRange } from '../../src/model/manifest/index.js';
import type { Project } from './check.js';
import { type Completion, completeQuestion, completeYaml } from './complete.js';
import { type HoverTarget, objectText, questionTarget, schemaText, targetAt } from './hover.js';
import { type Statement, statementsOf } from './osql-scope.js';
import {
  CheckingThread,
  type DocumentKind,
  fileOf,
  kindOf,
  type LspOptions,
  type ProjectState,
  Projects,
  projectOf,
  reportError,
} from './projects.js';
import { findKey, type Outline, outlineOf, type YamlRange } from './yaml/find.js';
import { placeAt } from './yaml/place.js';

const DELAY_MS = 150;
const SOURCE = 'osl';

interface OpenDocument {
  readonly document: TextDocument;
  readonly file: string;
  readonly kind: DocumentKind;
  readonly state: ProjectState | null;
}

export class EditorSession {
  readonly #connection: Connection;
  readonly #options: LspOptions;
  readonly #documents = new TextDocuments(TextDocument);
  readonly #thread = new CheckingThread();
  readonly #projects: Projects;
  /** Files with published diagnostics, by their project's manifest. */
  readonly #published = new Map<string, ReadonlySet<string>>();

  constructor(connection: Connection, options: LspOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#projects = new Projects(
      this.#thread,
      DELAY_MS,
      () => this.#texts(),
      (project, faults) => {
        this.#publish(project, faults);
        this.#recheckQuestions(project);
      },
    );
  }

  listen(): void {
    const connection = this.#connection;
    const documents = this.#documents;
    documents.onDidChangeContent(({ document }) => this.#changed(document));
    documents.onDidClose(({ document }) => this.#closed(document));
    documents.listen(connection);
    connection.onCompletion(({ textDocument, position }) => this.#complete(textDocument.uri, position));
    connection.onHover(({ textDocument, position }) => this.#hover(textDocument.uri, position));
    connection.onDefinition(({ textDocument, position }) => this.#definition(textDocument.uri, position));
    connection.onDocumentSymbol(({ textDocument }) => this.#symbols(textDocument.uri));
    connection.onCodeAction((params) => this.#actions(params));
  }

  async close(): Promise<void> {
    await this.#thread.close();
  }

  #texts(): readonly (readonly [file: string, text: string])[] {
    return this.#documents.all().flatMap((document) => {
      const file = fileOf(document.uri);
      return file === null ? [] : [[file, document.getText()] as const];
    });
  }

  #own(uri: string): OpenDocument | null {
    const document = this.#documents.get(uri);
    const file = fileOf(uri);
    if (document === undefined || file === null) return null;
    const kind = kindOf(file, document.getText(), this.#options);
    if (kind === null) return null;
    const project = projectOf(file, kind, this.#options);
    return { document, file, kind, state: project === null ? null : this.#projects.stateOf(project) };
  }

  #changed(document: TextDocument): void {
    const own = this.#own(document.uri);
    if (own?.state == null) return;
    if (own.kind === 'questions') this.#checkQuestions(own.document, own.state).catch(reportError);
    else this.#projects.changed(own.state.project);
  }

  /** Clears the diagnostics of a closed file, and rechecks open projects, which now use the file on disk. */
  #closed(document: TextDocument): void {
    this.#send(document.uri, []);
    const file = fileOf(document.uri);
    if (file === null) return;
    for (const other of this.#documents.all()) {
      const project = this.#own(other.uri)?.state?.project;
      if (project !== undefined && (project.manifestFile === file || project.policyFile === file))
        this.#projects.changed(project);
    }
  }

  #publish({ manifestFile, policyFile }: Project, faults: readonly Fault[]): void {
    const files = new Set(faults.map(({ file }) => file));
    const before = this.#published.get(manifestFile) ?? new Set();
    this.#published.set(manifestFile, files);
    for (const file of new Set([
      manifestFile,
      ...(policyFile === null ? [] : [policyFile]),
      ...before,
      ...files,
    ])) {
      const own = faults.filter((fault) => fault.file === file);
      this.#send(this.#uriOf(file), own.map(diagnosticOf));
    }
  }

  #send(uri: string, diagnostics: Diagnostic[]): void {
    const version = this.#documents.get(uri)?.version;
    this.#connection
      .sendDiagnostics({ uri, diagnostics, ...(version !== undefined && { version }) })
      .catch(reportError);
  }

  /** URI of a file, in the editor's spelling if the file is open. */
  #uriOf(file: string): string {
    return this.#documents.all().find(({ uri }) => fileOf(uri) === file)?.uri ?? pathToFileURL(file).href;
  }

  #recheckQuestions({ manifestFile }: Project): void {
    for (const { uri } of this.#documents.all()) {
      const own = this.#own(uri);
      if (own?.kind === 'questions' && own.state?.project.manifestFile === manifestFile)
        this.#checkQuestions(own.document, own.state).catch(reportError);
    }
  }

  async #checkQuestions(document: TextDocument, { project }: ProjectState): Promise<void> {
    const { version } = document;
    await this.#projects.settled(project);
    if (document.version !== version) return;
    const text = document.getText();
    const { manifestFile } = project;
    const { subject } = this.#options;
    const faults = await this.#thread.ask<'questions'>({ kind: 'questions', manifestFile, text, subject });
    if (document.version !== version || this.#documents.get(document.uri) === undefined) return;
    const diagnostics = (faults ?? []).map(({ code, message, hint, from, to }) => {
      const range = { start: document.positionAt(from), end: document.positionAt(to) };
      return diagnosticWith(code, message, hint, range);
    });
    this.#send(document.uri, diagnostics);
  }

  /** The document and the state of its project, for a request at a position; null outside any project. */
  async #lookUp(uri: string, position: Position) {
    const own = this.#own(uri);
    if (own?.state == null) return null;
    const { document, kind, state } = own;
    if (state.functions.length === 0) await this.#projects.settled(state.project);
    const at = document.offsetAt(position);
    return { ...this.#projects.stateOf(state.project), document, kind, at };
  }

  async #complete(uri: string, position: Position): Promise<Completion | null> {
    const found = await this.#lookUp(uri, position);
    if (found === null) return null;
    const { document, kind, names, functions, at } = found;
    if (kind === 'questions') {
      const statement = statementAt(document.getText(), at);
      return { items: [...completeQuestion(statement, at, names, functions)], isIncomplete: false };
    }
    const place = placeAt(linesOf(document), position.line, position.character);
    return place === null ? null : completeYaml(kind, place, position.line, names);
  }

  async #hover(uri: string, position: Position): Promise<Hover | null> {
    const found = await this.#lookUp(uri, position);
    if (found === null) return null;
    const { document, kind, project, names, functions, at } = found;
    if (kind === 'questions') {
      const statement = statementAt(document.getText(), at);
      const target = questionTarget(statement, at, names);
      if (target !== null) {
        const range = { start: document.positionAt(target.from), end: document.positionAt(target.to) };
        return hoverOf([objectText(target, names), await this.#visibility(target, project)], range);
      }
      const word = statement.tokens.find(({ from, to }) => from <= at && at <= to)?.text;
      const called = functions.filter(({ name }) => name === word);
      return hoverOf(
        called.map(
          (f) => `${f.kind} function **${f.name}**\n\n${f.signatures.map((s) => `- \`${s}\``).join('\n')}`,
        ),
        null,
      );
    }
    const place = placeAt(linesOf(document), position.line, position.character);
    if (place === null) return null;
    const target = targetAt(kind, place, names);
    const texts = target === null ? [] : [objectText(target, names), await this.#visibility(target, project)];
    const { line } = position;
    return hoverOf(
      [...texts, schemaText(kind, place)],
      placeRange({ line, start: place.start, end: place.end }),
    );
  }

  async #visibility({ object }: HoverTarget, { manifestFile }: Project): Promise<string | null> {
    return object === null
      ? null
      : this.#thread.ask<'visibility'>({ kind: 'visibility', manifestFile, object });
  }

  async #definition(uri: string, position: Position): Promise<Definition | null> {
    const found = await this.#lookUp(uri, position);
    if (found === null) return null;
    const { document, kind, project, names, at } = found;
    const place = kind === 'questions' ? null : placeAt(linesOf(document), position.line, position.character);
    const target =
      kind === 'questions'
        ? questionTarget(statementAt(document.getText(), at), at, names)
        : place === null
          ? null
          : targetAt(kind, place, names);
    if (target === null) return null;
    const file = target.declared.file === 'manifest' ? project.manifestFile : project.policyFile;
    if (file === null) return null;
    const text = this.#texts().find(([open]) => open === file)?.[1] ?? textOf(file);
    const key = text === null ? null : findKey(text.split('\n'), target.declared.steps);
    return key === null ? null : { uri: this.#uriOf(file), range: placeRange(key) };
  }

  #symbols(uri: string): DocumentSymbol[] {
    const own = this.#own(uri);
    if (own === null) return [];
    const { document, kind } = own;
    if (kind !== 'questions') {
      const lines = linesOf(document);
      return outlineOf(lines).map((section) => symbolOf(section, lines, SymbolKind.Namespace));
    }
    const text = document.getText();
    return statementsOf(text).map(({ from, to }): DocumentSymbol => {
      const range = { start: document.positionAt(from), end: document.positionAt(to) };
      return {
        name: text.slice(from, to).replace(/\s+/g, ' ').slice(0, 80),
        kind: SymbolKind.Function,
        range,
        selectionRange: range,
      };
    });
  }

  #actions({ textDocument: { uri }, context: { diagnostics } }: CodeActionParams): CodeAction[] {
    const document = this.#documents.get(uri);
    if (document === undefined) return [];
    return diagnostics.flatMap((diagnostic) => {
      if (diagnostic.source !== SOURCE) return [];
      const data: Partial<FaultData> = { ...diagnostic.data };
      const fix = fixFor(diagnostic, data.hint ?? null, document.getText(diagnostic.range));
      if (fix === null) return [];
      const { title, edit } = fix;
      return [
        {
          title,
          kind: CodeActionKind.QuickFix,
          diagnostics: [diagnostic],
          isPreferred: true,
          edit: { changes: { [uri]: [edit] } },
        },
      ];
    });
  }
}

function statementAt(text: string, at: number): Statement {
  const statements = statementsOf(text);
  const own = statements.findLast(({ from }) => from <= at);
  // After a semicolon, the position is in a new statement.
  if (own === undefined || /;/.test(text.slice(own.to, at))) return { tokens: [], from: at, to: at };
  return own;
}

function linesOf(document: TextDocument): readonly string[] {
  return document.getText().split(/\r?\n/);
}

function textOf(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null; // the check reports this
  }
}

function diagnosticOf({ code, severity, range, message, hint }: Fault): Diagnostic {
  return {
    ...diagnosticWith(code, message, hint, editorRange(range)),
    severity: severity === 'error' ? DiagnosticSeverity.Error : DiagnosticSeverity.Warning,
  };
}

function diagnosticWith(
  code: string,
  message: string,
  hint: string | null,
  range: Diagnostic['range'],
): Diagnostic {
  const data: FaultData = { hint };
  const text = hint === null ? message : `${message}\nhint: ${hint}`;
  return { range, severity: DiagnosticSeverity.Error, code, source: SOURCE, message: text, data };
}

function hoverOf(parts: readonly (string | null)[], range: Hover['range'] | null): Hover | null {
  const value = parts.filter((part) => part !== null && part !== '').join('\n\n---\n\n');
  if (value === '') return null;
  return { contents: { kind: MarkupKind.Markdown, value }, ...(range != null && { range }) };
}

function symbolOf(
  { name, place, last, children }: Outline,
  lines: readonly string[],
  kind: SymbolKind,
): DocumentSymbol {
  const end = { line: last, character: (lines[last] ?? '').length };
  return {
    name,
    kind,
    range: { start: { line: place.line, character: place.start }, end },
    selectionRange: placeRange(place),
    ...(children.length > 0 && {
      children: children.map((child) => symbolOf(child, lines, SymbolKind.Class)),
    }),
  };
}

/** Converts a one-based range to the editor's zero-based one; an empty range becomes one character wide. */
function editorRange({ start, end }: FileRange): Range {
  const from = { line: start.line - 1, character: start.column - 1 };
  const to = { line: end.line - 1, character: end.column - 1 };
  const empty = from.line === to.line && from.character === to.character;
  return { start: from, end: empty ? after(to) : to };
}

function after({ line, character }: Position): Position {
  return { line, character: character + 1 };
}

function placeRange({ line, start, end }: YamlRange): Range {
  return { start: { line, character: start }, end: { line, character: end } };
}

interface FaultData {
  readonly hint: string | null;
}

interface ProposedEdit {
  readonly title: string;
  readonly edit: TextEdit;
}

function fixFor(
  { range, message }: Pick<Diagnostic, 'range' | 'message'>,
  hint: string | null,
  marked: string,
): ProposedEdit | null {
  const [, better] = /^perhaps you meant `([^`]+)`/.exec(hint ?? '') ?? [];
  if (better !== undefined) {
    const newText = replaced(
      marked,
      better,
      [...`${message}`.matchAll(/`([^`]+)`/g)].map(([, word = '']) => word),
    );
    return newText === null ? null : { title: `Change to \`${better}\``, edit: { range, newText } };
  }
  if (/needs quotes/.test(hint ?? '') && !/["'\n]/.test(marked) && marked !== '')
    return { title: 'Put it into quotes', edit: { range, newText: `"${marked}"` } };
  return null;
}

/** Replaces `marked` if it is one word, else the first of `words` that it contains exactly once; null if none. */
function replaced(marked: string, better: string, words: readonly string[]): string | null {
  const [, quote = '', plain = ''] = /^(["']?)([^"'\n]*)\1$/.exec(marked) ?? [];
  if (/^[\p{L}\p{N}_.:@/ -]+$/u.test(plain) && !/[\s.]/.test(plain.trim()))
    return better.startsWith('"') && quote === '"' ? better : `${quote}${better}${quote}`;
  for (const word of words) {
    const parts = marked.split(
      new RegExp(
        `(?<![\\p{L}\\p{N}_])${word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}(?![\\p{L}\\p{N}_])`,
        'u',
      ),
    );
    // A hint names a column or an entity without the qualifiers that the query has.
    const qualifiers = better.includes('.') ? '' : word.slice(0, word.lastIndexOf('.') + 1);
    if (parts.length === 2) return parts.join(`${qualifiers}${better}`);
  }
  return null;
}

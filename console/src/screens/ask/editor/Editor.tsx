import {
  acceptCompletion,
  autocompletion,
  type Completion,
  type CompletionContext,
  type CompletionResult,
  closeBrackets,
  completionKeymap,
} from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import {
  bracketMatching,
  HighlightStyle,
  StreamLanguage,
  type StreamParser,
  syntaxHighlighting,
} from '@codemirror/language';
import { type Diagnostic, setDiagnostics } from '@codemirror/lint';
import { EditorState } from '@codemirror/state';
import { drawSelection, EditorView, keymap, lineNumbers, placeholder } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { useEffect, useImperativeHandle, useRef } from 'react';
import type { Schema } from '../../../../../clients/typescript/types.js';
import { type CompletionOffer, completionsAt, KEYWORDS } from './completions-at.js';

/** The colours are custom properties, because these also apply inside the editor's shadow root. */
const HIGHLIGHTING = syntaxHighlighting(
  HighlightStyle.define([
    { tag: tags.keyword, color: 'var(--code-keyword)', fontWeight: '600' },
    { tag: tags.string, color: 'var(--code-string)' },
    { tag: [tags.number, tags.atom], color: 'var(--code-number)' },
    { tag: tags.comment, color: 'var(--code-comment)', fontStyle: 'italic' },
    { tag: [tags.function(tags.variableName), tags.standard(tags.name)], color: 'var(--code-function)' },
  ]),
);

const THEME = EditorView.theme({
  '&': { height: '100%', backgroundColor: 'var(--panel)', color: 'var(--text)', fontSize: 'var(--size)' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.55' },
  '.cm-content': { padding: '10px 0', caretColor: 'var(--text)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-gutters': { backgroundColor: 'var(--panel)', color: 'var(--quiet)', border: 'none' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'transparent' },
  '&.cm-focused .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'var(--accent-soft) !important',
  },
  '.cm-placeholder': { color: 'var(--quiet)' },
  // The library's default marks are `data:` images, which the page's content security policy blocks.
  '.cm-lintRange-error': {
    backgroundImage: 'none',
    textDecoration: 'underline wavy var(--danger)',
    textUnderlineOffset: '4px',
  },
  '.cm-tooltip': {
    border: '1px solid var(--line)',
    borderRadius: '6px',
    backgroundColor: 'var(--panel)',
    color: 'var(--text)',
    boxShadow: 'var(--shadow)',
  },
  '.cm-tooltip.cm-tooltip-autocomplete > ul': { fontFamily: 'var(--mono)', maxHeight: '16em' },
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li': { padding: '3px 8px' },
  '.cm-tooltip-autocomplete ul li[aria-selected]': {
    backgroundColor: 'var(--accent)',
    color: 'var(--accent-text)',
  },
  '.cm-completionDetail': {
    color: 'var(--quiet)',
    fontStyle: 'normal',
    marginLeft: '1.2em',
    fontSize: '0.9em',
  },
  'li[aria-selected] .cm-completionDetail': { color: 'inherit' },
  '.cm-completionInfo': {
    padding: '8px 10px',
    maxWidth: '340px',
    whiteSpace: 'pre-wrap',
    fontFamily: 'var(--sans)',
    fontSize: 'var(--small)',
  },
  '.cm-diagnostic-error': { borderLeftColor: 'var(--danger)' },
});

/** Range of an error in the text, and its message including the hint. */
export interface ErrorMark {
  readonly from: number;
  readonly to: number;
  readonly message: string;
}

export interface EditorHandle {
  /** Replaces the whole text. */
  setText(text: string): void;
  /** Replaces the selection with the text that `textFor` returns, and focuses the editor. */
  insert(textFor: (text: string, from: number, to: number) => string): void;
  focus(): void;
}

interface EditorProps {
  readonly initial: string;
  readonly schema: Schema | null;
  readonly mark: ErrorMark | null;
  readonly onChange: (text: string) => void;
  /** Called with the current text, which `onChange` may not have reported yet. */
  readonly onRun: (text: string) => void;
  readonly ref?: React.Ref<EditorHandle>;
}

/**
 * Editor for OSL-SQL. It is in a shadow root, where it can adopt a style sheet: in the page itself it would add a style
 * element, which the page's content security policy blocks. Tab moves the focus away, or accepts a completion if the
 * list of completions is open.
 */
export function Editor({ initial, schema, mark, onChange, onRun, ref }: EditorProps) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const now = useRef({ schema, onChange, onRun });
  now.current = { schema, onChange, onRun };
  useImperativeHandle(ref, () => ({
    setText: (text) => {
      const { current } = view;
      current?.dispatch({ changes: { from: 0, to: current.state.doc.length, insert: text } });
    },
    insert: (textFor) => {
      const { current } = view;
      if (current === null) return;
      const { from, to } = current.state.selection.main;
      current.dispatch(current.state.replaceSelection(textFor(current.state.doc.toString(), from, to)));
      current.focus();
    },
    focus: () => view.current?.focus(),
  }));
  // biome-ignore lint/correctness/useExhaustiveDependencies: once created, the editor owns the text.
  useEffect(() => {
    const element = host.current;
    if (element === null) return;
    const root = element.shadowRoot ?? element.attachShadow({ mode: 'open' });
    const extensions = extensionsOf(now);
    view.current = new EditorView({
      root,
      parent: root,
      state: EditorState.create({ doc: initial, extensions }),
    });
    return () => {
      view.current?.destroy();
      view.current = null;
    };
  }, []);
  useEffect(() => {
    const { current } = view;
    if (current !== null)
      current.dispatch(setDiagnostics(current.state, diagnosticsOf(mark, current.state.doc.length)));
  }, [mark]);
  return <div ref={host} className="ask-host" />;
}

function diagnosticsOf(mark: ErrorMark | null, length: number): readonly Diagnostic[] {
  if (mark === null || mark.from > length) return [];
  return [{ from: mark.from, to: Math.min(mark.to, length), severity: 'error', message: mark.message }];
}

/**
 * Replaces a selection with typed text. By default, Chromium preserves the style of the replaced text in a style
 * attribute, which the page's content security policy blocks.
 */
function typeOver(event: InputEvent, view: EditorView): boolean {
  const { from, to, empty } = view.state.selection.main;
  const { data } = event;
  if (empty || event.inputType !== 'insertText' || data === null || event.isComposing) return false;
  event.preventDefault();
  const insert = () => view.state.update({ ...view.state.replaceSelection(data), userEvent: 'input.type' });
  const handled = view.state
    .facet(EditorView.inputHandler)
    .some((handle) => handle(view, from, to, data, insert));
  if (!handled) view.dispatch(insert());
  return true;
}

function extensionsOf(now: { readonly current: Pick<EditorProps, 'schema' | 'onChange' | 'onRun'> }) {
  return [
    lineNumbers(),
    history(),
    drawSelection(),
    bracketMatching(),
    closeBrackets(),
    OSL_SQL,
    HIGHLIGHTING,
    THEME,
    placeholder('select … from osl.entities. …'),
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({
      'aria-label': 'Question in OSL-SQL',
      'aria-description': 'Ctrl Enter asks. Escape, then Tab leaves the editor.',
    }),
    autocompletion({
      override: [completionSource(() => now.current.schema)],
      maxRenderedOptions: 60,
      icons: false,
    }),
    keymap.of([
      {
        key: 'Mod-Enter',
        run: (view) => {
          now.current.onRun(view.state.doc.toString());
          return true;
        },
      },
      { key: 'Tab', run: acceptCompletion },
      ...completionKeymap,
      ...defaultKeymap,
      ...historyKeymap,
    ]),
    EditorView.domEventHandlers({ beforeinput: typeOver }),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) now.current.onChange(update.state.doc.toString());
    }),
  ];
}

/** For each kind of completion, its type in the editor library and its rank; higher ranks are listed first. */
const KINDS: Readonly<Record<CompletionOffer['kind'], readonly [type: string, boost: number]>> = {
  column: ['property', 40],
  alias: ['variable', 35],
  entity: ['class', 30],
  facet: ['text', 30],
  metric: ['constant', 25],
  form: ['interface', 20],
  keyword: ['keyword', 0],
  function: ['function', -20],
};

/** Offers names from the caller's own schema, and no names before the schema has loaded. */
function completionSource(schema: () => Schema | null) {
  return (context: CompletionContext): CompletionResult | null => {
    const known = schema();
    if (known === null) return null;
    const found = completionsAt(context.state.doc.toString(), context.pos, known);
    if (found === null || found.offers.length === 0) return null;
    if (
      !context.explicit &&
      found.from === context.pos &&
      !/[.(']\s*$|\b(?:from|join)\s+$/i.test(textBefore(context))
    )
      return null;
    return { from: found.from, options: found.offers.map(optionOf), validFor: /^[\p{L}\p{N}_$]*$/u };
  };
}

function textBefore({ state, pos }: CompletionContext): string {
  return state.sliceDoc(Math.max(0, pos - 40), pos);
}

function optionOf({ label, kind, detail, info, text }: CompletionOffer): Completion {
  const [type, boost] = KINDS[kind];
  return {
    label,
    type,
    detail,
    boost,
    ...(info !== null && { info }),
    ...(text !== undefined && { apply: text }),
  };
}

interface ScannerState {
  /** Nesting depth of block comments. */
  comment: number;
}

const WORDS: ReadonlySet<string> = new Set(KEYWORDS);
const OPERATORS: ReadonlySet<string> = new Set(['retrieve', 'traverse', 'measure', 'evidence']);

/** Parser for highlighting only. The gateway alone determines the meaning of a query. */
const PARSER: StreamParser<ScannerState> = {
  name: 'osl-sql',
  startState: () => ({ comment: 0 }),
  token(stream, state) {
    if (state.comment > 0) return inComment(stream, state);
    if (stream.eatSpace()) return null;
    if (stream.match('--')) {
      stream.skipToEnd();
      return 'comment';
    }
    if (stream.match('/*')) {
      state.comment = 1;
      return inComment(stream, state);
    }
    if (stream.match(/^'(?:[^']|'')*'?/)) return 'string';
    if (stream.match(/^"(?:[^"]|"")*"?/)) return 'variableName';
    if (stream.match(/^\$\d+/)) return 'atom';
    if (stream.match(/^\d+(?:\.\d+)?(?:e[+-]?\d+)?/i)) return 'number';
    const word = stream.match(/^[\p{L}_][\p{L}\p{N}_$]*/u);
    if (word === null || word === true) {
      stream.next();
      return null;
    }
    const name = word === false ? '' : word[0].toLowerCase();
    if (OPERATORS.has(name)) return 'keyword';
    if (/^(?:true|false|null)$/.test(name)) return 'atom';
    if (WORDS.has(name)) return 'keyword';
    return /^\s*\(/.test(stream.string.slice(stream.pos)) ? 'variableName.function' : 'variableName';
  },
  languageData: { commentTokens: { line: '--', block: { open: '/*', close: '*/' } } },
};

function inComment(stream: Parameters<StreamParser<ScannerState>['token']>[0], state: ScannerState): string {
  while (state.comment > 0 && !stream.eol()) {
    if (stream.match('*/')) state.comment -= 1;
    else if (stream.match('/*')) state.comment += 1;
    else stream.next();
  }
  return 'comment';
}

const OSL_SQL = StreamLanguage.define(PARSER);

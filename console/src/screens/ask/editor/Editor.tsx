import { acceptCompletion, autocompletion, closeBrackets, completionKeymap } from '@codemirror/autocomplete';
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { bracketMatching } from '@codemirror/language';
import { type Diagnostic, setDiagnostics } from '@codemirror/lint';
import { EditorState } from '@codemirror/state';
import { drawSelection, EditorView, keymap, lineNumbers, placeholder } from '@codemirror/view';
import { useEffect, useImperativeHandle, useRef } from 'react';
import type { Schema } from '../../../../../clients/typescript/types.js';
import { completionSource } from './completion.js';
import { OSL_SQL } from './language.js';
import { HIGHLIGHTING, THEME } from './theme.js';

/** What an error says of the text, and what would mend it. */
export interface Mark {
  readonly from: number;
  readonly to: number;
  readonly message: string;
}

export interface EditorHandle {
  /** Takes the place of the whole text. */
  setText(text: string): void;
  focus(): void;
}

interface EditorProps {
  readonly initial: string;
  readonly schema: Schema | null;
  readonly mark: Mark | null;
  readonly onChange: (text: string) => void;
  /** With the text as it stands, which the page may not have heard of yet. */
  readonly onRun: (text: string) => void;
  readonly ref?: React.Ref<EditorHandle>;
}

/**
 * The editor of OSL-SQL. It stands in a shadow root: there it adopts a style sheet, where in the page itself it would add
 * an element of style, which the policy of the page refuses. Tab leaves it, and takes a completion while some are shown.
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
    focus: () => view.current?.focus(),
  }));
  // biome-ignore lint/correctness/useExhaustiveDependencies: the text belongs to the editor once it is there.
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

function diagnosticsOf(mark: Mark | null, length: number): readonly Diagnostic[] {
  if (mark === null || mark.from > length) return [];
  return [{ from: mark.from, to: Math.min(mark.to, length), severity: 'error', message: mark.message }];
}

/**
 * Types over a selection. Left to itself, Chromium keeps the look of what was there in an attribute of style, which the
 * policy of the page refuses.
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

interface Now {
  readonly current: Pick<EditorProps, 'schema' | 'onChange' | 'onRun'>;
}

function extensionsOf(now: Now) {
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

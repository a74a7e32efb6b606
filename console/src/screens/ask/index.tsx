import { useCallback, useEffect, useRef, useState } from 'react';
import type { Plan, Problem, Query } from '../../../../clients/typescript/types.js';
import { explain } from '../../api/ask.js';
import type { SignedInCaller } from '../../api/caller.js';
import { ProblemError } from '../../api/http.js';
import { useSchema } from '../../api/schema.js';
import { ErrorBox } from '../../parts/ErrorBox.js';
import { Loading } from '../../parts/load/Loaded.js';
import { useSession } from '../../shell/session.js';
import { AnswerView } from './AnswerView.js';
import { useSorting } from './answer-grid.js';
import { type DialogName, Dialogs } from './Dialogs.js';
import { shownAnswer } from './download/answer-file.js';
import { Editor, type EditorHandle, type ErrorMark } from './editor/Editor.js';
import { applied, fixOf, placeOf } from './fix.js';
import { Examples } from './LibraryView.js';
import { bodyOf, type QuestionDraft, useDraft, useLibrary } from './library.js';
import { PlanView } from './PlanView.js';
import { SchemaPanel } from './schema/SchemaPanel.js';
import { insertionAt } from './schema/schema-lines.js';
import { StatusLine, Toolbar } from './Toolbar.js';
import { useAnswer } from './useAnswer.js';
import './ask.css';

export function Screen() {
  const { caller } = useSession();
  const known = useSchema(caller);
  const { schema } = known;
  const editor = useRef<EditorHandle>(null);
  const [dialog, setDialog] = useState<DialogName | null>(null);
  const taken = useCallback((text: string) => editor.current?.setText(text), []);
  const { draft, change } = useDraft(taken);
  const library = useLibrary(caller.key);
  const answer = useAnswer(caller);
  const plan = usePlan(caller);
  const [hasSchema, setHasSchema] = useState(() => matchMedia('(min-width: 1000px)').matches);
  const { text, kind } = draft;
  const isEmpty = text.trim() === '';
  const run = (asked: string): void => {
    if (asked.trim() === '') return;
    plan.clear();
    library.asked({ text: asked, kind, at: Date.now() });
    answer.run(asked, bodyOf({ text: asked, kind }));
  };
  const explainIt = (): void => {
    answer.clear();
    plan.explain(text, bodyOf(draft));
  };
  const take = (next: QuestionDraft): void => {
    change({ text: next.text, kind: next.kind });
    editor.current?.setText(next.text);
    setDialog(null);
    editor.current?.focus();
  };
  const fault =
    answer.state.kind === 'failed'
      ? { ...answer.state, again: () => run(text) }
      : plan.state.kind === 'failed'
        ? { ...plan.state, again: explainIt }
        : null;
  const problem = fault?.error instanceof ProblemError ? fault.error.problem : null;
  const isCurrent = fault !== null && fault.text === text;
  const fix = problem !== null && isCurrent ? fixOf(text, problem) : null;
  const { state } = answer;
  const ended = state.kind === 'answered' || state.kind === 'cancelled' ? state : null;
  const sorting = useSorting(ended?.store ?? null, ended?.described.columns ?? null);
  return (
    <div className="ask">
      {hasSchema && (
        <SchemaPanel
          known={known}
          isRawSql={kind === 'sql'}
          onInsert={(line) => editor.current?.insert((whole, from, to) => insertionAt(whole, from, to, line))}
        />
      )}
      <div className="ask-main">
        <section className="ask-question" aria-label="Question">
          <div className="ask-editor">
            <Editor
              ref={editor}
              initial={text}
              schema={schema}
              mark={problem !== null && isCurrent ? markOf(text, problem) : null}
              onChange={(next) => change({ text: next })}
              onRun={run}
            />
          </div>
          <Toolbar
            kind={kind}
            isRunning={state.kind === 'running'}
            isEmpty={isEmpty}
            hasSchema={hasSchema}
            onSchema={() => setHasSchema((has) => !has)}
            onKind={(next) => change({ kind: next })}
            onRun={() => run(text)}
            onCancel={answer.cancel}
            onExplain={explainIt}
            onOpen={setDialog}
          />
        </section>
        <section className="ask-answer" aria-label="Answer">
          {fault !== null && (
            <ErrorBox
              error={fault.error}
              text={fault.text}
              {...(isUsersFault(fault.error) ? {} : { again: fault.again })}
              fix={
                fix === null
                  ? null
                  : {
                      label: `Use ${fix.insert}`,
                      take: () => {
                        editor.current?.setText(applied(text, fix));
                        editor.current?.focus();
                      },
                    }
              }
            />
          )}
          {fault === null && plan.state.kind === 'asking' && <Loading what="the plan" />}
          {fault === null && plan.state.kind === 'explained' && <PlanView plan={plan.state.plan} />}
          {fault === null && plan.state.kind === 'idle' && state.kind === 'idle' && (
            <Examples known={known} onTake={(example) => take({ text: example, kind: 'osql' })} />
          )}
          {(state.kind === 'running' || state.kind === 'answered' || state.kind === 'cancelled') && (
            <AnswerView state={state} schema={schema} sorting={sorting} />
          )}
        </section>
        <StatusLine
          state={state}
          isSorting={sorting.isSorting}
          onReceipt={() => setDialog('receipt')}
          onDownload={() => setDialog('download')}
        />
      </div>
      <Dialogs
        open={dialog}
        draft={draft}
        library={library}
        answer={ended === null ? null : shownAnswer(ended, sorting.order)}
        receipt={(state.kind === 'answered' ? state.trailer?.receipt : undefined) ?? null}
        onClose={() => setDialog(null)}
        onTake={take}
      />
    </div>
  );
}

/** True if running the same query again cannot help. */
function isUsersFault(error: unknown): boolean {
  return error instanceof ProblemError && error.problem.status < 500 && error.retryAt === null;
}

/** Returns the mark of an error in the editor, with its message; null if the error has no position in the text. */
function markOf(text: string, { position, code, detail, hint }: Problem): ErrorMark | null {
  const place = placeOf(text, position);
  if (place === null) return null;
  return { ...place, message: [`${code}: ${detail}`, ...(hint === null ? [] : [hint])].join('\n') };
}

type PlanState =
  | { readonly kind: 'idle' }
  | { readonly kind: 'asking' }
  | { readonly kind: 'explained'; readonly plan: Plan }
  | { readonly kind: 'failed'; readonly text: string; readonly error: unknown };

function usePlan(caller: SignedInCaller) {
  const [state, setState] = useState<PlanState>({ kind: 'idle' });
  const asking = useRef<AbortController | null>(null);
  const ask = useCallback(
    (text: string, body: Query) => {
      asking.current?.abort();
      const controller = new AbortController();
      asking.current = controller;
      const show = (next: PlanState): void => {
        if (!controller.signal.aborted) setState(next);
      };
      show({ kind: 'asking' });
      explain(caller, body, controller.signal).then(
        (plan) => show({ kind: 'explained', plan }),
        (error: unknown) => show({ kind: 'failed', text, error }),
      );
    },
    [caller],
  );
  const clear = useCallback(() => {
    asking.current?.abort();
    setState({ kind: 'idle' });
  }, []);
  useEffect(() => () => asking.current?.abort(), []);
  return { state, explain: ask, clear };
}

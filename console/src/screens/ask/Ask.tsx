import { useMemo, useState } from 'react';
import { Empty } from '../../parts/Empty.js';
import { ErrorBox } from '../../parts/ErrorBox.js';
import { DataGrid } from '../../parts/grid/DataGrid.js';
import { useSession } from '../../shell/session.js';
import { answerGrid } from './answer-grid.js';
import './ask.css';
import { useAnswer } from './useAnswer.js';

/** A question as text, and its answer. */
export function Ask() {
  const { caller } = useSession();
  const [text, setText] = useState('');
  const { state, run, cancel } = useAnswer(caller);
  const data = useMemo(
    () =>
      state.kind === 'answered'
        ? answerGrid(state.store, state.trailer?.columns ?? [], () => null)
        : state.kind === 'running'
          ? answerGrid(state.store, [], () => null)
          : null,
    [state],
  );
  return (
    <div className="ask">
      <div className="ask-editor">
        <textarea
          aria-label="Question"
          value={text}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) run(text, { osql: text });
          }}
        />
        <button type="button" className="primary" onClick={() => run(text, { osql: text })}>
          Run
        </button>
        {state.kind === 'running' && (
          <button type="button" onClick={cancel}>
            Cancel
          </button>
        )}
      </div>
      <div className="ask-answer">
        {state.kind === 'idle' && <Empty title="Ask something" text="In OSL-SQL, over what you may see." />}
        {state.kind === 'failed' && <ErrorBox error={state.error} text={state.text} />}
        {data !== null && <DataGrid label="Answer" data={data} version={data.rows} />}
      </div>
    </div>
  );
}

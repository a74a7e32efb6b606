import { type FormEvent, useEffect, useId, useRef, useState } from 'react';
import type { Answer } from '../../../../clients/typescript/types.js';
import { CopyText, download } from '../../parts/CopyText.js';
import { Dialog } from '../../parts/Dialog.js';
import { ErrorBox } from '../../parts/ErrorBox.js';
import { Tabs } from '../../parts/Tabs.js';
import { hashOf } from '../../shell/routes.js';
import { useSession } from '../../shell/session.js';
import { type CopyTarget, copyAs, WAY_TITLES, WAYS } from './copy-as.js';
import {
  answerFile,
  type ExportedAnswer,
  FILE_FORMATS,
  type FileFormat,
  fileName,
} from './download/answer-file.js';
import { LibraryView } from './LibraryView.js';
import { type LibraryState, linkTo, type QuestionDraft } from './library.js';

export type DialogName = 'library' | 'save' | 'share' | 'copy' | 'download' | 'receipt';

type ReceiptWithSalt = NonNullable<Answer['receipt']>;

interface DialogsProps {
  readonly open: DialogName | null;
  readonly draft: QuestionDraft;
  readonly library: LibraryState;
  /** The answer to download; null until a query has ended. */
  readonly answer: ExportedAnswer | null;
  readonly receipt: ReceiptWithSalt | null;
  readonly onClose: () => void;
  readonly onTake: (draft: QuestionDraft) => void;
}

/** Dialogs to open, save, share and export queries, to download an answer, and to show its receipt. */
export function Dialogs({ open, draft, library, answer, receipt, onClose, onTake }: DialogsProps) {
  return (
    <>
      <Dialog title="Questions" open={open === 'library'} onClose={onClose}>
        <LibraryView library={library} onTake={onTake} />
      </Dialog>
      <Dialog title="Save this query" open={open === 'save'} onClose={onClose}>
        <SaveForm
          onSave={(name) => {
            const refusal = library.save({ ...draft, name, at: Date.now() });
            if (refusal === null) onClose();
            return refusal;
          }}
        />
      </Dialog>
      <Dialog title="Share this query" open={open === 'share'} onClose={onClose}>
        <p>
          Whoever opens the link sees the question, and runs it under their own rights. It holds no rows, and
          nothing runs by itself.
        </p>
        <CopyText label="Link" text={linkTo(draft, location.origin)} />
      </Dialog>
      <Dialog title="Run it elsewhere" open={open === 'copy'} onClose={onClose}>
        <CopyAs draft={draft} />
      </Dialog>
      <Dialog title="Download" open={open === 'download' && answer !== null} onClose={onClose}>
        {answer !== null && <DownloadForm answer={answer} />}
      </Dialog>
      <Dialog title="Receipt" open={open === 'receipt' && receipt !== null} onClose={onClose}>
        {receipt !== null && <Receipt receipt={receipt} />}
      </Dialog>
    </>
  );
}

function SaveForm({ onSave }: { readonly onSave: (name: string) => string | null }) {
  const id = useId();
  const [name, setName] = useState('');
  const [refusal, setRefusal] = useState<string | null>(null);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (name.trim() !== '') setRefusal(onSave(name.trim()));
  };
  return (
    <form className="stack" onSubmit={submit}>
      <label htmlFor={id}>Name</label>
      <input
        id={id}
        value={name}
        maxLength={120}
        ref={input}
        onChange={(event) => setName(event.target.value)}
      />
      <button type="submit" className="primary" disabled={name.trim() === ''}>
        Save question
      </button>
      <p className="quiet">Stored in this browser only, for this server and your user.</p>
      {refusal !== null && <p role="alert">{refusal}</p>}
    </form>
  );
}

function Receipt({ receipt: { proof, salt } }: { readonly receipt: ReceiptWithSalt }) {
  return (
    <>
      <p>
        Shows who asked, when, what was read and masked, and digests of question and rows. Anybody with the
        key of the audit log can <a href={hashOf('receipts')}>check it</a>.
      </p>
      <CopyText label="Receipt" text={proof} />
      <button type="button" onClick={() => download('receipt.txt', proof, 'text/plain')}>
        Save as a file
      </button>
      <p>
        With the salt, the rows and the question can be compared with the receipt. Give it only to those who
        may see the answer, since a small answer can be guessed with it.
      </p>
      <CopyText label="Salt" text={salt} />
    </>
  );
}

function CopyAs({ draft }: { readonly draft: QuestionDraft }) {
  const { caller, settings } = useSession();
  const [way, setWay] = useState<CopyTarget>('curl');
  const text = copyAs(way, {
    ...draft,
    origin: location.origin,
    wire: settings.wire,
    chain: caller.identity.chain,
    localTokens: settings.local_tokens,
  });
  return (
    <Tabs
      label="Ways"
      tabs={WAYS.map((name) => ({ name, title: WAY_TITLES[name] }))}
      chosen={way}
      onChoose={setWay}
    >
      <CopyText label={WAY_TITLES[way]} text={text} />
    </Tabs>
  );
}

const TITLES: Readonly<Record<FileFormat, string>> = { csv: 'CSV', json: 'JSON', parquet: 'Parquet' };

const ABOUT: Readonly<Record<FileFormat, string>> = {
  csv: 'Values as they are, NULL as an empty field, empty text as "". A spreadsheet may calculate cells that begin with =, +, - or @.',
  json: 'As POST /osl/query returns it, with the columns and their types.',
  parquet: 'Columns with types; numeric and interval are text.',
};

/** Form that saves the rows in the page as a file; nothing is requested from the gateway. */
function DownloadForm({ answer }: { readonly answer: ExportedAnswer }) {
  const [writing, setWriting] = useState<FileFormat | null>(null);
  const [error, setError] = useState<unknown>(null);
  const closed = useRef<AbortController>(null);
  useEffect(() => {
    const stop = new AbortController();
    closed.current = stop;
    return () => stop.abort();
  }, []);
  const save = (format: FileFormat): void => {
    const signal = closed.current?.signal ?? AbortSignal.abort();
    setWriting(format);
    setError(null);
    answerFile(answer, format, signal)
      .then((blob) => download(fileName(answer, format), blob, blob.type))
      .catch((fault: unknown) => {
        if (!signal.aborted) setError(fault);
      })
      .finally(() => setWriting(null));
  };
  const rows = answer.rows === 1 ? '1 row' : `${answer.rows.toLocaleString('en')} rows`;
  const masked = answer.columns.filter(({ redacted }) => redacted).map(({ name }) => name);
  return (
    <div className="stack ask-download" aria-busy={writing !== null}>
      <p>
        {rows}, {answer.isSorted ? 'sorted as shown' : 'in the order in which they came'}. The file is made
        from the rows in this page: the query does not run again.
      </p>
      {answer.isCut && (
        <p className="ask-told">
          These are not all rows of the answer, so the name of the file says “incomplete”.
        </p>
      )}
      {masked.length > 0 && <p>Masked here, and therefore in the file: {masked.join(', ')}.</p>}
      <ul className="stack">
        {FILE_FORMATS.map((format) => (
          <li key={format}>
            <button type="button" disabled={writing !== null} onClick={() => save(format)}>
              {TITLES[format]}
            </button>
            <span className="quiet">{writing === format ? 'Writing …' : ABOUT[format]}</span>
          </li>
        ))}
      </ul>
      {error !== null && <ErrorBox error={error} />}
    </div>
  );
}

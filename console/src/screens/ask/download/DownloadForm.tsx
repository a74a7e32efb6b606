import { useEffect, useRef, useState } from 'react';
import { download } from '../../../parts/CopyText.js';
import { ErrorBox } from '../../../parts/ErrorBox.js';
import { answerFile, FILE_FORMATS, type FileFormat, fileName, type ShownAnswer } from './answer-file.js';

const TITLES: Readonly<Record<FileFormat, string>> = { csv: 'CSV', json: 'JSON', parquet: 'Parquet' };

const ABOUT: Readonly<Record<FileFormat, string>> = {
  csv: 'Values as they are, NULL as an empty field, empty text as "". A spreadsheet may calculate cells that begin with =, +, - or @.',
  json: 'As POST /osl/query returns it, with the columns and their types.',
  parquet: 'Columns with types; numeric and interval are text.',
};

interface DownloadFormProps {
  readonly answer: ShownAnswer;
}

/** Saves the rows that the page has; nothing is requested from the gateway. */
export function DownloadForm({ answer }: DownloadFormProps) {
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
    <div className="ask-download" aria-busy={writing !== null}>
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
      <ul>
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

import { type ReactNode, useEffect, useState } from 'react';
import type { VerificationJob } from '../../api/admin-types.js';
import { ErrorBox } from '../ErrorBox.js';
import { formatTime } from './format.js';
import type { LoadState } from './useLoad.js';

/** Time in ms after which the page says that the gateway is slow. */
const SLOW_MS = 4_000;

interface LoadingProps {
  /** Name of the value that is loaded: `your metrics`. */
  readonly what: string;
}

/** Placeholder while a value is loaded. After `SLOW_MS`, it says that the gateway has not answered yet. */
export function Loading({ what }: LoadingProps) {
  const [isSlow, setSlow] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), SLOW_MS);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div className="stack pad quiet" role="status">
      <p>Loading {what} …</p>
      {isSlow && <p>The gateway has not answered yet. This goes on as soon as it does.</p>}
    </div>
  );
}

interface LoadedProps<T> extends LoadingProps {
  readonly state: LoadState<T>;
  readonly children: (value: T) => ReactNode;
}

/** Shows the loaded value, a notice while loading, or the error. A failed refresh keeps the last value. */
export function Loaded<T>({ what, state, children }: LoadedProps<T>) {
  const { value, error, again } = state;
  return (
    <>
      {error !== null && <ErrorBox error={error} again={again} />}
      {value !== null && children(value)}
      {value === null && error === null && <Loading what={what} />}
    </>
  );
}

interface JobHeadProps {
  /** State of the job; null before the first response. */
  readonly job: Pick<VerificationJob, 'state' | 'ended_at' | 'by'> | null;
  readonly begin: () => void;
  /** Labels of the button before and during the job, and the text shown if the job never ran. */
  readonly words: { readonly begin: string; readonly running: string; readonly never: string };
  /** Shown while the job runs. */
  readonly progress: ReactNode;
}

/** Button that starts a server job, followed by the job's progress, or by its end time and who started it. */
export function JobHead({ job, begin, words, progress }: JobHeadProps) {
  const isRunning = job?.state === 'running';
  return (
    <div className="row">
      <button type="button" className="primary" disabled={job === null || isRunning} onClick={begin}>
        {isRunning ? words.running : words.begin}
      </button>
      {isRunning && progress}
      {job !== null && !isRunning && (
        <span role="status" className="quiet">
          {job.ended_at === null ? words.never : formatTime(job.ended_at).slice(0, 19)}
          {job.by !== null && ` by ${job.by}`}
        </span>
      )}
    </div>
  );
}

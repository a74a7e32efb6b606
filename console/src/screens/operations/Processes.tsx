import type { ReactNode } from 'react';
import type { Figures, ProcessView } from '../../api/admin-types.js';
import { formatAge, formatCount, formatTimeLeft } from '../../parts/load/format.js';

interface ProcessesProps {
  readonly processes: readonly ProcessView[];
  readonly workers: Figures['workers'];
}

/** The server's processes: start time, what each one serves, and the state of its audit log. */
export function Processes({ processes, workers }: ProcessesProps) {
  const now = Date.now();
  return (
    <div className="processes">
      {workers !== null && workers.serving < workers.wanted && (
        <p className="warning warn" role="alert">
          {workers.serving} of {workers.wanted} workers serve
        </p>
      )}
      <PolicyWarning processes={processes} now={now} />
      <PlainTable
        label="Processes"
        columns={['process', 'up for', 'policy', 'manifest', ...numberColumns('audit records'), 'state']}
      >
        {processes.map((one) => (
          <tr key={one.process}>
            <th scope="row">
              {one.process} <span className="quiet">pid {one.pid}</span>
            </th>
            <td>{formatAge(one.since, now)}</td>
            <td>
              <code>{one.policy === null ? 'none' : one.policy.slice(0, 10)}</code>
            </td>
            <td>
              <code>{one.manifest.slice(0, 10)}</code>
            </td>
            <td className="number">
              {formatCount(one.audit.records)}
              {one.audit.waiting > 0 && <span className="quiet"> {formatCount(one.audit.waiting)} wait</span>}
            </td>
            <td>{stateOf(one)}</td>
          </tr>
        ))}
      </PlainTable>
    </div>
  );
}

/** Warns of a missing or invalid policy, and shows how long the last valid policy stays in force. */
function PolicyWarning({ processes, now }: Pick<ProcessesProps, 'processes'> & { readonly now: number }) {
  const one = processes.find(({ policy_fault }) => policy_fault !== null);
  if (one === undefined) return null;
  const until = one.policy_kept_until;
  return (
    <p className="warning warn" role="alert">
      The newest policy is missing or invalid: <code>{one.policy_fault}</code>.{' '}
      {until === null
        ? 'Every request is refused.'
        : `The last valid policy stays in force for ${formatTimeLeft(until, now)} more; then every request is refused.`}
    </p>
  );
}

function stateOf({ draining, policy, policy_kept_until, audit, out_of_service }: ProcessView): string {
  if (audit.failing !== null) return `audit log failing: ${audit.failing}`;
  if (policy === null) return 'no policy: all requests are refused';
  if (draining) return 'draining: no new sessions';
  if (policy_kept_until !== null) return 'running with the last valid policy';
  return out_of_service.length > 0 ? `out of service: ${out_of_service.join(', ')}` : 'running';
}

interface PlainTableProps {
  readonly label: string;
  readonly columns: readonly (string | PlainColumn)[];
  /** Rows, as `tr` elements. */
  readonly children: ReactNode;
}

interface PlainColumn {
  readonly name: string;
  /** Class of the header: right-aligned, wide, or for screen readers only. */
  readonly look: 'number' | 'wide-column' | 'hidden';
}

/** Columns of numbers, which are right-aligned. */
export function numberColumns(...names: readonly string[]): readonly PlainColumn[] {
  return names.map((name) => ({ name, look: 'number' }));
}

/** Table in a box that scrolls on its own, by mouse or keyboard, if the table is too wide. */
export function PlainTable({ label, columns, children }: PlainTableProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: arrow keys scroll it.
    <section className="box scroll" aria-label={label} tabIndex={0}>
      <table className="plain-table">
        <thead>
          <tr>
            {columns.map((column) => {
              const { name, look } = typeof column === 'string' ? { name: column, look: '' } : column;
              return (
                <th key={name} scope="col" className={look === 'hidden' ? '' : look}>
                  {look === 'hidden' ? <span className="hidden">{name}</span> : name}
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </section>
  );
}

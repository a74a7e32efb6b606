import './parts.css';
import type { ReactNode } from 'react';

interface FactListProps {
  /** Names and values. A fact whose value is null is omitted. */
  readonly facts: readonly (readonly [name: string, value: ReactNode])[];
}

export function FactList({ facts }: FactListProps) {
  return (
    <dl className="facts">
      {facts.map(([name, value]) =>
        value === null ? null : (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ),
      )}
    </dl>
  );
}

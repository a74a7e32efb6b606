import { type ReactNode, useId } from 'react';

export interface PickListProps<T> {
  readonly title: string;
  readonly all: readonly T[];
  readonly total: number;
  readonly term: string;
  readonly onTerm: (term: string) => void;
  readonly nameOf: (one: T) => string;
  readonly isPicked: (one: T) => boolean;
  readonly onToggle: (one: T) => void;
  readonly row: (one: T) => ReactNode;
  /** What is said where there is nothing to pick. */
  readonly none: string;
}

/** Beyond so many a list has a field to search it. */
const SEARCHED = 10;

/** Things to tick. */
export function PickList<T>(props: PickListProps<T>) {
  const { title, all, total, term, onTerm, nameOf, isPicked, onToggle, row, none } = props;
  const id = useId();
  return (
    <section className="pick" aria-labelledby={id}>
      <h3 id={id}>{title}</h3>
      {(total > SEARCHED || term !== '') && (
        <input
          type="search"
          aria-label={`Search ${title.toLowerCase()}`}
          placeholder="Search …"
          value={term}
          onChange={(event) => onTerm(event.target.value)}
        />
      )}
      <ul className="pick-list">
        {all.map((one) => (
          <li key={nameOf(one)}>
            <label className="pick-row">
              <input type="checkbox" checked={isPicked(one)} onChange={() => onToggle(one)} />
              {row(one)}
            </label>
          </li>
        ))}
      </ul>
      {all.length === 0 && <p className="quiet">{term === '' ? none : 'Nothing of that name.'}</p>}
      {total > all.length && (
        <p className="quiet">{`${all.length} of ${total.toLocaleString('en')}: search for the others`}</p>
      )}
    </section>
  );
}

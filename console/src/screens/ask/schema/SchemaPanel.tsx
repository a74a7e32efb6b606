// biome-ignore-all lint/a11y/useFocusableInteractive: the tree handles the keyboard as a whole.
import { type KeyboardEvent, useDeferredValue, useId, useMemo, useState } from 'react';
import type { LoadedSchema } from '../../../api/schema.js';
import { isNoAccess } from '../../../parts/Empty.js';
import { Loading } from '../../../parts/load/Loaded.js';
import { useKept } from '../../../parts/useKept.js';
import { type SchemaLine, schemaLines } from './schema-lines.js';

interface SchemaPanelProps {
  readonly known: LoadedSchema;
  /** True if the query is raw SQL, which names tables instead of the objects listed here. */
  readonly isRawSql: boolean;
  readonly onInsert: (line: SchemaLine) => void;
}

/** Searchable list of the entities, columns and metrics that the caller may use, to insert into a query. */
export function SchemaPanel({ known: { schema, error, again }, isRawSql, onInsert }: SchemaPanelProps) {
  const [search, setSearch] = useKept('schema-search', '');
  const wanted = useDeferredValue(search);
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const lines = useMemo(
    () => (schema === null ? [] : schemaLines(schema, wanted, open)),
    [schema, wanted, open],
  );
  return (
    <aside id="ask-schema" className="ask-schema" aria-label="Schema">
      <input
        type="search"
        aria-label="Search the schema"
        placeholder="Search names and descriptions"
        value={search}
        onChange={(event) => setSearch(event.target.value)}
      />
      {isRawSql && (
        <p className="quiet">SQL over tables uses the names in the database, which may differ from these.</p>
      )}
      {error !== null && !isNoAccess(error) && (
        <div className="ask-schema-note">
          <p className="quiet">Not loaded.</p>
          <button type="button" onClick={again}>
            Load the schema again
          </button>
        </div>
      )}
      {error === null && schema === null && <Loading what="names" />}
      {schema !== null && lines.length === 0 && (
        <p className="quiet ask-schema-note">
          {wanted.trim() === '' ? 'Nothing that you may query.' : 'Nothing with these words.'}
        </p>
      )}
      {lines.length > 0 && (
        <SchemaTree
          lines={lines}
          open={open}
          onOpen={(entity, isOpen) => {
            const next = new Set(open);
            if (isOpen) next.add(entity);
            else next.delete(entity);
            setOpen(next);
          }}
          onInsert={onInsert}
        />
      )}
    </aside>
  );
}

/** Maximum number of lines in the tree; the user can search for the others. */
const MOST_LINES = 300;

interface SchemaTreeProps {
  readonly lines: readonly SchemaLine[];
  readonly open: ReadonlySet<string>;
  readonly onOpen: (entity: string, isOpen: boolean) => void;
  readonly onInsert: (line: SchemaLine) => void;
}

/** A tree that is a single Tab stop: arrow keys move between lines and open or close entities; Enter inserts. */
function SchemaTree({ lines, open, onOpen, onInsert }: SchemaTreeProps) {
  const id = useId();
  const shown = lines.slice(0, MOST_LINES);
  const [at, setAt] = useState(0);
  const active = Math.min(at, shown.length - 1);
  const move = (to: number): void => {
    const next = Math.min(Math.max(0, to), shown.length - 1);
    setAt(next);
    document.getElementById(`${id}-${next}`)?.scrollIntoView({ block: 'nearest' });
  };
  const onKey = (event: KeyboardEvent): void => {
    const { key } = event;
    const line = shown[active];
    const to = destinationOf(key, active, shown);
    if (line === undefined) return;
    if (to !== null) move(to);
    else if (key === 'Enter') onInsert(line);
    else if (line.kind === 'entity' && (key === 'ArrowRight' || key === 'ArrowLeft'))
      onOpen(line.name, key === 'ArrowRight');
    else return;
    event.preventDefault();
  };
  return (
    <>
      <div
        role="tree"
        className="ask-tree"
        aria-label="Entities, columns and metrics"
        aria-description="Enter inserts a name."
        aria-activedescendant={`${id}-${active}`}
        tabIndex={0}
        onKeyDown={onKey}
      >
        {shown.map((line, i) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: Enter in the tree does the same.
          <div
            key={`${line.kind} ${line.entity} ${line.name}`}
            id={`${id}-${i}`}
            role="treeitem"
            aria-level={line.kind === 'column' ? 2 : 1}
            aria-expanded={line.kind === 'entity' ? shown[i + 1]?.kind === 'column' : undefined}
            aria-selected={i === active}
            className={`ask-line ask-line-${line.kind}`}
            title={line.description ?? undefined}
            onClick={() => {
              setAt(i);
              onInsert(line);
            }}
          >
            {line.kind === 'entity' && (
              <span
                className="ask-line-open"
                aria-hidden="true"
                onClick={(event) => {
                  event.stopPropagation();
                  setAt(i);
                  onOpen(line.name, !open.has(line.name));
                }}
              >
                {shown[i + 1]?.kind === 'column' ? '▾' : '▸'}
              </span>
            )}
            {line.kind === 'metric' && (
              <span className="ask-line-open" aria-hidden="true">
                Σ
              </span>
            )}
            <LineWords line={line} />
          </div>
        ))}
      </div>
      {lines.length > shown.length && (
        <p className="quiet ask-schema-note">
          {(lines.length - shown.length).toLocaleString('en')} more: search for a name.
        </p>
      )}
    </>
  );
}

/** Returns the line to which a key moves from line `at`; null if the key does not move to another line. */
function destinationOf(key: string, at: number, lines: readonly SchemaLine[]): number | null {
  const line = lines[at];
  switch (key) {
    case 'ArrowDown':
      return at + 1;
    case 'ArrowUp':
      return at - 1;
    case 'Home':
      return 0;
    case 'End':
      return lines.length - 1;
    case 'ArrowLeft':
      if (line?.kind !== 'column') return null;
      return lines.findIndex(({ kind, name }) => kind === 'entity' && name === line.entity);
    default:
      return null;
  }
}

function LineWords({ line: { kind, name, detail, masked } }: { readonly line: SchemaLine }) {
  return (
    <>
      <span className="ask-line-name">{name}</span>{' '}
      <span className="ask-line-detail">
        {kind === 'metric' && <span className="hidden">metric </span>}
        {detail}
      </span>
      {masked !== 'none' && (
        <span className="pill masked">{masked === 'all' ? 'masked' : 'masked in some rows'}</span>
      )}
    </>
  );
}

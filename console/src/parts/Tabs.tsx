import { type KeyboardEvent, type ReactNode, useId, useRef } from 'react';
import { useKept } from './useKept.js';
import './parts.css';

interface KeptTabsProps {
  readonly label: string;
  /** Name under which the browser tab stores the choice. */
  readonly name: string;
  readonly tabs: readonly KeptTab[];
}

interface KeptTab {
  readonly name: string;
  readonly title: string;
  readonly panel: () => ReactNode;
}

/** Tabs of a screen. The chosen tab, at first the first one, survives a reload. */
export function KeptTabs({ label, name, tabs }: KeptTabsProps) {
  const [kept, setKept] = useKept(`${name}-tab`, tabs[0]?.name ?? '');
  const chosen = tabs.find((tab) => tab.name === kept) ?? tabs[0];
  return (
    <Tabs label={label} tabs={tabs} chosen={chosen?.name ?? ''} onChoose={setKept}>
      {chosen?.panel()}
    </Tabs>
  );
}

interface TabsProps<T extends string> {
  readonly label: string;
  readonly tabs: readonly { readonly name: T; readonly title: ReactNode }[];
  readonly chosen: T;
  readonly onChoose: (name: T) => void;
  readonly children: ReactNode;
}

/** Tabs that share one panel, with the keyboard behaviour of the ARIA tabs pattern. */
export function Tabs<T extends string>({ label, tabs, chosen, onChoose, children }: TabsProps<T>) {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const move = (event: KeyboardEvent): void => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (step === 0) return;
    const at = tabs.findIndex(({ name }) => name === chosen);
    const next = (at + step + tabs.length) % tabs.length;
    const tab = tabs[next];
    if (tab === undefined) return;
    onChoose(tab.name);
    list.current?.querySelectorAll<HTMLElement>('[role=tab]')[next]?.focus();
  };
  return (
    <div className="tabs">
      <div role="tablist" aria-label={label} className="tabs-list" ref={list} onKeyDown={move}>
        {tabs.map(({ name, title }) => (
          <button
            key={name}
            type="button"
            role="tab"
            id={`${id}-${name}`}
            aria-selected={name === chosen}
            aria-controls={`${id}-panel`}
            tabIndex={name === chosen ? 0 : -1}
            onClick={() => onChoose(name)}
          >
            {title}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${chosen}`} className="tabs-panel">
        {children}
      </div>
    </div>
  );
}

import { useState } from 'react';
import { Tabs } from '../../parts/Tabs.js';
import './audit.css';
import { CheckFile } from './CheckFile.js';
import { Search } from './Search.js';
import { Verify } from './Verify.js';

const TABS = [
  { name: 'search', title: 'Search' },
  { name: 'verify', title: 'Verify' },
  { name: 'check', title: 'Check a proof' },
] as const;
type TabName = (typeof TABS)[number]['name'];

/** What the audit log says, and whether it can be believed. */
export function Audit() {
  const [tab, setTab] = useState<TabName>('search');
  return (
    <div className="audit">
      <Tabs label="Audit log" tabs={TABS} chosen={tab} onChoose={setTab}>
        <Panel tab={tab} />
      </Tabs>
    </div>
  );
}

function Panel({ tab }: { readonly tab: TabName }) {
  switch (tab) {
    case 'search':
      return <Search />;
    case 'verify':
      return <Verify />;
    case 'check':
      return <CheckFile />;
    default: {
      const unknown: never = tab;
      return unknown;
    }
  }
}

import t from 'tap';
import { startForms } from './fixture.js';
import { TICKETS, TICKETS_MANIFEST, TICKETS_POLICY, type Ticket, ticketScript } from './tickets.js';

t.setTimeout(600_000);

const isHidden = ({ region }: Ticket): boolean => region === 'us';
const veiled = (ticket: Ticket): Ticket => ({
  ...ticket,
  body: ticket.body === null ? null : 'refund refund late',
});

/** Worlds that differ in what a caller may not see: it must get the same answers in each. */
const WORLDS: Readonly<Record<string, { readonly who: string; readonly tickets: readonly Ticket[] }>> = {
  'hidden rows are gone': { who: 'user:eu', tickets: TICKETS.filter((ticket) => !isHidden(ticket)) },
  'hidden rows say something else': {
    who: 'user:eu',
    tickets: TICKETS.map((ticket) => (isHidden(ticket) ? veiled(ticket) : ticket)),
  },
  'there are more hidden rows than operators take': {
    who: 'user:eu',
    tickets: [
      ...Array.from({ length: 40 }, (_, i) => ({
        id: 100 + i,
        region: 'us' as const,
        status: 'open' as const,
        body: `delivery number ${i}`,
      })),
      ...TICKETS,
    ],
  },
  'masked texts say something else': { who: 'user:veil', tickets: TICKETS.map(veiled) },
  'texts masked elsewhere say something else': {
    who: 'user:part',
    tickets: TICKETS.map((ticket) => (isHidden(ticket) ? veiled(ticket) : ticket)),
  },
};

const LABELS = "ARRAY['refund', 'delivery']";
const ENCODERS = `classify(body, ${LABELS}) as class, classify(body, ${LABELS}, min_score => 0.3) as sure,
  tag(body, ${LABELS}, threshold => 0.1) as tags, similarity(body, 'late delivery') as near,
  rank(body, query => 'refund', lambda => 0.5) as place, dedup(body, threshold => 0.8) as same,
  outlier(body, k => 2) as strange, cluster(body, k => 2) as grp`;

const QUESTIONS = [
  `select id, ${ENCODERS} from osl.entities.ticket`,
  `select id, ${ENCODERS} from osl.entities.ticket where status = 'open' order by subject limit 2`,
  `select class, count(*), sum(amount) from (select amount, classify(body, ${LABELS}) as class from osl.entities.ticket) t group by class order by class`,
  `select id, classify(body, ${LABELS}) from osl.entities.ticket where 1 / (amount - 2.5) > 0 order by id limit 3`,
  `select id from osl.entities.ticket where classify(body, ${LABELS}) = 'refund' order by id`,
  `select t.id, dedup(t.body) from osl.entities.ticket t where exists (select 1 from osl.entities.ticket u where u.id = t.id and u.body like '%late%')`,
];

/** Status, rows and message of each question, for who asks it. */
async function answers(tickets: readonly Ticket[], who: string): Promise<readonly string[]> {
  const forms = await startForms({
    manifest: TICKETS_MANIFEST,
    policy: TICKETS_POLICY,
    script: ticketScript(tickets),
    schema: 'desk',
  });
  try {
    const found: string[] = [];
    for (const question of QUESTIONS) {
      const { status, rows, message } = await forms.ask(who, question);
      found.push(JSON.stringify([status, message, rows]));
    }
    return found;
  } finally {
    await forms.close();
  }
}

const known = new Map<string, Promise<readonly string[]>>();

function asItIs(who: string): Promise<readonly string[]> {
  const found = known.get(who) ?? answers(TICKETS, who);
  known.set(who, found);
  return found;
}

for (const [name, { who, tickets }] of Object.entries(WORLDS)) {
  t.test(`${who}: ${name}`, async (t) => {
    const here = await asItIs(who);
    t.ok(here.some((text) => text.startsWith('[200') && text.includes('"id"')));
    t.same(await answers(tickets, who), here);
  });
}

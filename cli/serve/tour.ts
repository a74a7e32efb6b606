import { formatAnswer, parseAnswer } from '../answer.js';
import { postQuery } from '../client.js';
import { openIssuer } from '../issuer.js';
import { formatProblem, problemOf } from '../reply.js';
import { restUrl } from '../server-file.js';
import type { RunningServer } from './server.js';

interface TourQuestion {
  readonly subject: string;
  readonly asks: string;
  readonly osql: string;
  /** Printed below an answer without rows. */
  readonly none?: string;
}

const QUESTIONS: readonly TourQuestion[] = [
  {
    subject: 'user:analyst',
    asks: 'Which licences take the most room?',
    osql: 'select license, count(*) as packages, sum(install_bytes) as bytes from osl.entities.package group by license order by bytes desc limit 5',
  },
  {
    subject: 'user:analyst',
    asks: 'Who is named in the most packages? (An analyst does not see addresses.)',
    osql: 'select p.name, p.email, count(*) as credits from osl.entities.person p join osl.entities.credit c on c.person_id = p.id group by p.name, p.email order by credits desc, p.name limit 5',
  },
  {
    subject: 'user:counsel',
    asks: 'Which licences are not MIT, ISC, BSD or Apache? (Counsel sees no other packages.)',
    osql: 'select license, count(*) as packages from osl.entities.package group by license order by packages desc, license limit 5',
    none: 'No rows: every package that is installed here is under one of these terms.',
  },
];

export async function tour({ record, settings }: RunningServer): Promise<string> {
  const issuer = await openIssuer(settings, record.policyFile);
  const url = restUrl(record);
  const parts = ['Three questions, asked just now:', ''];
  for (const { subject, asks, osql, none } of QUESTIONS) {
    const { token } = await issuer.mint({ subject });
    const reply = await postQuery(url, token, { osql });
    const answer = reply.ok ? parseAnswer(reply.body) : null;
    const shown =
      answer === null ? formatProblem(problemOf(reply.body, reply.status), osql) : formatAnswer(answer);
    const empty = answer !== null && answer.rows.length === 0 && none !== undefined;
    parts.push(asks, `${subject}> ${osql}`, '', shown, ...(empty ? [none] : []), '');
  }
  return parts.join('\n');
}

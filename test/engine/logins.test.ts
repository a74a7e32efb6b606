import t from 'tap';
import { type ConnectorLogins, CurrentLogins } from '../../src/engine/postgres/logins.js';
import { NoSystemCredentials } from '../../src/engine/upstream-report.js';

const urlWith = (password: string, host = 'db'): string => `postgres://osl:${password}@${host}:5432/shop`;
const URL_OF: ConnectorLogins = { url: urlWith('old'), systemUrl: null };

const refusal = (): Error => Object.assign(new Error('the password is wrong'), { code: '28P01' });

/** A server that takes one password, and what it was asked with. */
function server(password: string): {
  readonly asked: string[];
  readonly connect: (url: string) => Promise<string>;
} {
  const asked: string[] = [];
  const connect = async (url: string): Promise<string> => {
    asked.push(url);
    if (new URL(url).password !== password) throw refusal();
    return url;
  };
  return { asked, connect };
}

t.test('a password that was changed is asked for once, for all sessions that wait', async (t) => {
  let asked = 0;
  const logins = async (): Promise<ConnectorLogins> => {
    asked += 1;
    return { ...URL_OF, url: urlWith('new') };
  };
  const current = new CurrentLogins({ ...URL_OF, logins });
  const { connect } = server('new');
  const sessions = await Promise.all([1, 2, 3].map(() => current.connect('url', connect)));
  t.same(new Set(sessions), new Set([urlWith('new')]));
  t.equal(asked, 1);
  t.equal(await current.connect('url', connect), urlWith('new'), 'and kept');
  t.equal(asked, 1);
});

t.test('what is refused again, and what is no refusal, is the error of the session', async (t) => {
  const same = new CurrentLogins({ ...URL_OF, logins: async () => URL_OF });
  const { asked, connect } = server('new');
  await t.rejects(same.connect('url', connect), { code: '28P01' });
  t.same(asked, [urlWith('old')], 'not tried again with the same password');
  const none = new CurrentLogins(URL_OF);
  await t.rejects(none.connect('url', connect), { code: '28P01' });
  const down = (): Promise<never> =>
    Promise.reject(Object.assign(new Error('down'), { code: 'ECONNREFUSED' }));
  const never = new CurrentLogins({ ...URL_OF, logins: () => Promise.reject(new Error('was asked')) });
  await t.rejects(never.connect('url', down), { code: 'ECONNREFUSED' });
});

t.test('a URL that is not known yet is asked for; the fault of its source is told', async (t) => {
  const unknown: ConnectorLogins = { url: null, systemUrl: null };
  const { asked, connect } = server('new');
  const later = new CurrentLogins({ ...unknown, logins: async () => ({ ...URL_OF, url: urlWith('new') }) });
  t.equal(await later.connect('url', connect), urlWith('new'));
  const failing = new CurrentLogins({ ...unknown, logins: () => Promise.reject(new Error('no vault')) });
  await t.rejects(failing.connect('url', connect), { message: 'no vault' });
  const silent = new CurrentLogins(unknown);
  await t.rejects(silent.connect('url', connect), { message: 'its URL is not known' });
  await t.rejects(silent.connect('systemUrl', connect), NoSystemCredentials);
  t.equal(asked.length, 1, 'nothing was connected without a URL');
});

t.test('another database is not followed', async (t) => {
  const logins = async (): Promise<ConnectorLogins> => ({ ...URL_OF, url: urlWith('new', 'elsewhere') });
  const { asked, connect } = server('new');
  await t.rejects(new CurrentLogins({ ...URL_OF, logins }).connect('url', connect), { code: '28P01' });
  t.same(asked, [urlWith('old')]);
});

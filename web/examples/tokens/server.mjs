// A server that gives access tokens, with nothing but Node's standard library:
//
//   HOLDFAST_API_KEYS=NAME:SECRET ORIGIN=http://localhost:8000 node server.mjs 127.0.0.1:8090
//   curl 'http://127.0.0.1:8090/token?room=hall&name=Ada'

import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';

/** Signs what a person may do (docs/API.md has all grants) with the key that signaling nodes have. */
function mint(key, secret, identity, name, room) {
  const exp = Math.floor(Date.now() / 1000) + 600;
  const claims = { iss: key, sub: identity, name, exp, video: { roomJoin: true, room } };
  const signed = [{ alg: 'HS256', typ: 'JWT' }, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.');
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
}

const [first] = (process.env.HOLDFAST_API_KEYS ?? '').split(',');
const [, key, secret] = /^\s*([^:]+):(.+?)\s*$/.exec(first) ?? [];
const [, host, port] = /^(.*):(\d+)$/.exec(process.argv[2] ?? '') ?? [];
if (!secret || !port) {
  console.error('usage: HOLDFAST_API_KEYS=NAME:SECRET node server.mjs HOST:PORT');
  process.exit(1);
}

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url, 'http://localhost');
  const [room, name] = [searchParams.get('room'), searchParams.get('name')];
  if (request.method !== 'GET' || pathname !== '/token') return response.writeHead(404).end();
  if (!room || !name) return response.writeHead(400).end('room and name are missing\n');
  // Put your own here: who is logged in, and whether that person may enter the room. An identity is one person's.
  const token = mint(key, secret, name, name, room);
  response.writeHead(200, { 'Content-Type': 'application/json', 'Access-Control-Allow-Origin': process.env.ORIGIN ?? '' }); // of the page that asks
  return response.end(JSON.stringify({ token }));
});
server.listen(Number(port), host, () => console.log(`http://${host}:${server.address().port}/token`));

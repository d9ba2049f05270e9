# A deterministic workload that allocates much: parses, walks and writes JSON. parse_json.py [ROUNDS [SIZE]]
import json, random, sys
rnd = random.Random(20170321)
def rec(d):
    k = rnd.random()
    if d == 0 or k < .45:
        return rnd.choice([rnd.randrange(10**9), rnd.random()*1e6, "".join(chr(97+rnd.randrange(26)) for _ in range(rnd.randrange(2,40))), None, True])
    if k < .7: return [rec(d-1) for _ in range(rnd.randrange(1,8))]
    return {"k%d" % rnd.randrange(200): rec(d-1) for _ in range(rnd.randrange(1,10))}
doc = [rec(6) for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 3000)]
txt = json.dumps(doc)
rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
tot = 0
keep = []
for i in range(rounds):
    d = json.loads(txt)
    def walk(o):
        if isinstance(o, dict): return 1 + sum(walk(v) for v in o.values())
        if isinstance(o, list): return 1 + sum(map(walk, o))
        return 1
    tot += walk(d)
    keep.append({str(k): v for k, v in enumerate(d) if k % 10 == i % 10})
    if len(keep) > 5: keep.pop(0)
    json.dumps(d, sort_keys=True)
print(len(txt), tot)

